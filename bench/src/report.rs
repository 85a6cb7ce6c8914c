//! Tables from samples: medians with their spread, ratios, and which budgets are met.

use std::fmt::Write;

use crate::budget::{self, Bound};
use crate::sample::Sample;

/// The values of one cell, one per round.
struct Cell<'a> {
    row: &'a str,
    column: &'a str,
    values: Vec<f64>,
}

/// One table of the report.
struct Table<'a> {
    name: &'a str,
    cells: Vec<Cell<'a>>,
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted.get((sorted.len().max(1) - 1) / 2), sorted.get(sorted.len() / 2));
    low.zip(high).map_or(f64::NAN, |(low, high)| (low + high) / 2.0)
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A median with the smallest and the greatest value.
fn spread(middle: f64, values: &[f64]) -> String {
    if middle.is_nan() {
        return "not measured".to_owned();
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} ({}–{})", number(middle), number(least), number(most))
}

/// The ratio of two cells: of their medians, with the spread of the ratios of each round.
fn ratio(of: &Cell<'_>, to: &Cell<'_>) -> String {
    let rounds: Vec<f64> = of.values.iter().zip(&to.values).map(|(of, to)| of / to).collect();
    spread(median(&of.values) / median(&to.values), &rounds)
}

impl<'a> Table<'a> {
    fn cell(&self, row: &str, column: &str) -> Option<&Cell<'a>> {
        self.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    fn rows(&self) -> Vec<&'a str> {
        distinct(self.cells.iter().map(|cell| cell.row))
    }

    fn columns(&self) -> Vec<&'a str> {
        distinct(self.cells.iter().map(|cell| cell.column))
    }

    fn floor(&self, column: &str) -> Option<&Cell<'a>> {
        budget::FLOORS.iter().find_map(|row| self.cell(row, column))
    }

    fn best_peer(&self, column: &str) -> Option<&Cell<'a>> {
        let peers = self
            .cells
            .iter()
            .filter(|cell| cell.column == column && !budget::is_ours(cell.row) && !budget::FLOORS.contains(&cell.row));
        let better = |cell: &Cell<'_>| {
            let middle = median(&cell.values);
            if budget::less_is_better(column) { -middle } else { middle }
        };
        peers.max_by(|one, other| better(one).total_cmp(&better(other)))
    }

    /// A budget as text, and whether a row meets it; nothing where it, or a row it needs, was not measured.
    fn judge(&self, row: &str, column: &str, bound: Bound) -> Option<(String, bool)> {
        let of = |row: &str| Some(median(&self.cell(row, column)?.values)).filter(|middle| !middle.is_nan());
        let own = of(row)?;
        let unit = column.rsplit_once(' ').map_or(column, |(_, unit)| unit);
        Some(match bound {
            Bound::AtLeast(least) => (format!("≥ {least} {unit}"), own >= least),
            Bound::AtMost(most) => (format!("≤ {most} {unit}"), own <= most),
            Bound::AtMostOf(most, row) => {
                (format!("≤ {} × {row} ({})", number(most), number(own / of(row)?)), own <= most * of(row)?)
            }
            Bound::AtLeastOf(least, row) => {
                (format!("≥ {} × {row} ({})", number(least), number(own / of(row)?)), own >= least * of(row)?)
            }
            Bound::BestPeer(times) => {
                let peer = median(&self.best_peer(column)?.values);
                if budget::less_is_better(column) {
                    ("below every peer".to_owned(), own * times <= peer)
                } else {
                    (format!("≥ {times} × best peer"), own >= times * peer)
                }
            }
        })
    }

    fn verdicts(&self, row: &str, missed: &mut usize) -> String {
        let budgets = budget::of(self.name, row).into_iter();
        let verdicts = budgets.filter_map(|(column, bound)| self.judge(row, column, bound)).map(|(text, met)| {
            *missed += usize::from(!met);
            format!("{text}: {}", if met { "ok" } else { "MISSED" })
        });
        verdicts.collect::<Vec<_>>().join("; ")
    }

    fn lines(&self, missed: &mut usize) -> Vec<Vec<String>> {
        let columns = self.columns();
        let main = columns.first().copied().unwrap_or_default();
        let (floor, peer) = (self.floor(main), self.best_peer(main));
        let mut head = vec![self.name.to_owned()];
        head.extend(columns.iter().map(|column| (*column).to_owned()));
        head.extend(floor.map(|floor| format!("÷ {}", floor.row)));
        head.extend(peer.map(|peer| format!("÷ {}", peer.row)));
        let judged = self.rows().iter().any(|row| !budget::of(self.name, row).is_empty());
        head.extend(judged.then(|| "budget".to_owned()));
        let mut lines = vec![head];
        for row in self.rows() {
            let mut line = vec![row.to_owned()];
            for column in &columns {
                let cell = self.cell(row, column);
                line.push(cell.map_or_else(|| "–".to_owned(), |cell| spread(median(&cell.values), &cell.values)));
            }
            for reference in [floor, peer].into_iter().flatten() {
                let own = self.cell(row, main).filter(|own| own.row != reference.row);
                line.push(own.map_or_else(|| "–".to_owned(), |own| ratio(own, reference)));
            }
            if judged {
                line.push(self.verdicts(row, missed));
            }
            lines.push(line);
        }
        lines
    }
}

fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// Markdown, its columns aligned so that it also reads as plain text.
fn aligned(lines: &[Vec<String>]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        for (column, width) in widths.iter().enumerate() {
            let cell = line.get(column).map_or("", String::as_str);
            let pad = " ".repeat(width - cell.chars().count());
            text.push_str(&if column == 0 { format!("| {cell}{pad} ") } else { format!("| {pad}{cell} ") });
        }
        text.push_str("|\n");
        if at == 0 {
            for (column, width) in widths.iter().enumerate() {
                let _ = write!(text, "|{}{}", "-".repeat(width + 1), if column == 0 { "-" } else { ":" });
            }
            text.push_str("|\n");
        }
    }
    text
}

/// All tables, in the order in which they were first measured; and how many budgets are missed.
pub fn tables(samples: &[Sample]) -> (String, usize) {
    let mut missed = 0;
    let mut text = String::new();
    for name in distinct(samples.iter().map(|sample| sample.table.as_str())) {
        let mut table = Table { name, cells: Vec::new() };
        for sample in samples.iter().filter(|sample| sample.table == name) {
            let (row, column) = (sample.row.as_str(), sample.column.as_str());
            match table.cells.iter_mut().find(|cell| cell.row == row && cell.column == column) {
                Some(cell) => cell.values.push(sample.value),
                None => table.cells.push(Cell { row, column, values: vec![sample.value] }),
            }
        }
        text.push_str(&aligned(&table.lines(&mut missed)));
        text.push('\n');
    }
    (text, missed)
}
