//! What Spots and Actors have in common: their constants, their callbacks, and what a factory is told of these.

use super::service::Member;
use super::{Context, doc};
use crate::ir::{Exchange, Relocation, Timer};

/// What is constant of a Spot or an Actor.
pub(super) struct Constants<'a> {
    /// `Spot` or `Actor`.
    pub(super) what: &'a str,
    pub(super) name: &'a str,
    pub(super) stable_type: &'a str,
    pub(super) constant: &'a str,
    pub(super) timers: &'a [Timer],
    /// The constant of each.
    pub(super) of_timers: &'a [String],
}

/// A subscription or timer, the method that handles it, and what that gets.
pub(super) struct Handled<'a, T> {
    pub(super) it: &'a T,
    pub(super) ident: String,
    pub(super) input: String,
}

/// One method of a trait.
pub(super) struct Callback<'a> {
    pub(super) ident: &'a str,
    /// What it has of its object: a turn that has it, or the object and a turn.
    pub(super) yields: bool,
    pub(super) argument: &'a str,
    pub(super) input: &'a str,
    pub(super) output: &'a str,
}

/// The types of the turns that callbacks get.
#[derive(Clone, Copy)]
pub(super) struct Turns<'a> {
    pub(super) turn: &'a str,
    pub(super) yield_turn: &'a str,
}

impl Context<'_> {
    pub(super) fn constants(&mut self, it: &Constants<'_>) {
        let Constants {
            what, name, constant, ..
        } = it;
        self.text.line("");
        self.text
            .line(format_args!("/// The stable type of the {what}s `{name}`."));
        let value = format_args!("rt::{what}Type::from_static({:?})", it.stable_type);
        self.text
            .line(format_args!("pub const {constant}: rt::{what}Type = {value};"));
        for (timer, constant) in it.timers.iter().zip(it.of_timers) {
            self.text.line("");
            let otherwise = format_args!("The timer `{}` of the {what}s `{name}`.", timer.name);
            doc::lines(self.text, &timer.doc, otherwise);
            let value = format_args!("rt::TimerName::from_static({:?})", timer.name);
            self.text
                .line(format_args!("pub const {constant}: rt::TimerName = {value};"));
        }
    }

    pub(super) fn callback(&mut self, turns: Turns<'_>, it: &Callback<'_>) {
        let Callback {
            ident, argument, input, ..
        } = it;
        let own = if it.yields {
            format!("turn: &mut {}<'_, Self>", turns.yield_turn)
        } else {
            format!("&mut self, turn: &mut {}<'_>", turns.turn)
        };
        self.text.line(format_args!("fn {ident}({own}, {argument}: {input})"));
        self.text.line(format_args!("-> {};", future(it.output)));
    }

    pub(super) fn on_method(&mut self, turns: Turns<'_>, member: &Member<'_>, yields: bool) {
        let otherwise = format_args!("Handles `{}`.", member.method.packet);
        doc::lines(self.text, &member.method.doc, otherwise);
        self.callback(
            turns,
            &Callback {
                ident: &member.ident,
                yields,
                argument: member.argument,
                input: &member.input,
                output: &member.output,
            },
        );
    }

    pub(super) fn on_ticks(&mut self, turns: Turns<'_>, timers: &[Handled<'_, Timer>]) {
        for Handled { it, ident, input } in timers {
            let otherwise = format_args!("Handles a tick of the timer `{}`.", it.name);
            doc::lines(self.text, &it.doc, otherwise);
            self.callback(
                turns,
                &Callback {
                    ident,
                    yields: it.yields,
                    argument: "tick",
                    input,
                    output: "()",
                },
            );
        }
    }

    /// Tells a factory of a method that `own`, a path, handles.
    pub(super) fn registers(&mut self, member: &Member<'_>, own: &str, yields: bool, closes: bool) {
        let register = match member.method.exchange {
            Exchange::Send { .. } => "send",
            Exchange::Request { .. } => "request",
        };
        let yields = if yields { "_yielding" } else { "" };
        let closes = if closes { "_closing" } else { "" };
        let packet = &member.method.packet;
        self.text
            .line(format_args!("    .{register}{yields}{closes}({packet:?}, {own})"));
    }

    /// Tells a factory of the timers that methods of `own`, a path, handle.
    pub(super) fn registers_ticks(&mut self, timers: &[Handled<'_, Timer>], own: &str) {
        for Handled { it, ident, .. } in timers {
            let yields = if it.yields { "_yielding" } else { "" };
            self.text
                .line(format_args!("    .timer{yields}({:?}, {own}::{ident})", it.name));
        }
    }

    pub(super) fn registers_relocation(&mut self, it: &Relocation) {
        let policy = match it {
            Relocation::Preserve { .. } => "Preserve",
            Relocation::Recreate => "Recreate",
            Relocation::Disabled => "Disabled",
        };
        self.text
            .line(format_args!("    .relocation(rt::Relocation::{policy})"));
    }
}

/// Each timer with the method that handles it.
pub(super) fn ticks<'a>(timers: &'a [Timer], idents: impl Iterator<Item = String>) -> Vec<Handled<'a, Timer>> {
    let timers = timers.iter().zip(idents);
    timers
        .map(|(it, ident)| Handled {
            it,
            ident,
            input: "rt::Tick".to_owned(),
        })
        .collect()
}

/// What the methods of timers want to be called.
pub(super) fn on_timers(timers: &[Timer]) -> Vec<String> {
    timers.iter().map(|timer| format!("on_{}", timer.name)).collect()
}

pub(super) fn future(output: &str) -> String {
    format!("impl rt::Future<Output = rt::Result<{output}, rt::HandlerError>> + rt::Send")
}
