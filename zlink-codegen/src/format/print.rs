//! The tree of a file as text in the one form: two spaces a level, collections in braces while they fit one line.
//!
//! It must not lose a comment: each is printed in turn, before or behind the value it stands at.

use super::tree::{Comment, Entry, Node, Shape, Tree};

/// The longest line that a collection in braces makes.
const WIDTH: usize = 120;
const STEP: usize = 2;
/// The same, as a block scalar says it.
const STEP_DIGIT: char = '2';

pub(super) fn print(tree: &Tree<'_>) -> String {
    let mut printer = Printer {
        tree,
        text: tree.text,
        out: String::new(),
        next: 0,
    };
    let first = tree.leaves.first().copied().unwrap_or(tree.text.len());
    printer.above(first.min(tree.root.first()), 0);
    if matches!(&tree.root.shape, Shape::Map { .. } | Shape::List { .. }) {
        printer.anchor(&tree.root, 0);
    }
    match &tree.root.shape {
        Shape::Map { .. } | Shape::List { .. } => printer.collection(&tree.root, 0),
        _ => printer.inline_line(&tree.root, 0),
    }
    printer.above(usize::MAX, 0);
    printer.out
}

struct Printer<'t, 's> {
    tree: &'t Tree<'s>,
    text: &'t str,
    out: String,
    /// The first comment that is not printed yet.
    next: usize,
}

impl<'t, 's> Printer<'t, 's> {
    fn line(&mut self, indent: usize, text: &str) {
        if !text.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    fn comment(&mut self) -> Option<&'t Comment> {
        self.tree.comments.get(self.next)
    }

    /// The comments before a byte, each on a line of its own, and the blank line before what stands there.
    fn above(&mut self, before: usize, indent: usize) {
        while let Some(comment) = self.comment().filter(|comment| comment.start < before) {
            self.next += 1;
            self.blank(comment.start);
            let words = self.text.get(comment.start..comment.end).unwrap_or_default();
            self.line(indent, words);
        }
        if before < usize::MAX {
            self.blank(before);
        }
    }

    /// One blank line, where the file has one or more before a byte; none at the top of the file or of a collection.
    fn blank(&mut self, before: usize) {
        let gap = self.text.get(..before).unwrap_or_default();
        // What stands before an item stands before its dash.
        let gap = match gap.trim_end().strip_suffix('-') {
            Some(rest) if rest.trim_end_matches(' ').ends_with('\n') => rest,
            _ => gap,
        };
        let white = gap.len() - gap.trim_end().len();
        let breaks = gap.get(gap.len() - white..).unwrap_or_default().matches('\n').count();
        let opened = self.out.trim_end_matches('\n').ends_with(':');
        if breaks > 1 && !self.out.is_empty() && !opened && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Comments that stand on the line of what was printed last, up to the next leaf.
    fn behind(&mut self, from: usize, indent: usize) {
        let limit = self.next_leaf(from);
        let mut on_line = true;
        while let Some(comment) = self
            .comment()
            .filter(|comment| !comment.own_line && comment.start < limit)
        {
            self.next += 1;
            let words = self.text.get(comment.start..comment.end).unwrap_or_default();
            let before = self.text.get(..comment.start).unwrap_or_default();
            let spaces = before.len() - before.trim_end_matches(' ').len();
            if on_line {
                self.out.extend(std::iter::repeat_n(' ', spaces.max(1)));
                self.out.push_str(words);
            } else {
                self.line(indent, words);
            }
            if on_line {
                self.out.push('\n');
            }
            on_line = false;
        }
        if on_line {
            self.out.push('\n');
        }
    }

    /// The first leaf that begins at `from` or behind.
    fn next_leaf(&self, from: usize) -> usize {
        let at = self.tree.leaves.partition_point(|leaf| *leaf < from);
        self.tree.leaves.get(at).copied().unwrap_or(usize::MAX)
    }

    /// A collection over several lines.
    fn collection(&mut self, node: &Node<'s>, indent: usize) {
        match &node.shape {
            Shape::Map { entries, .. } => {
                for (at, entry) in entries.iter().enumerate() {
                    self.above(entry.key.first(), indent);
                    self.entry(entry, indent, padding(self.tree, entries, at));
                }
                self.below(
                    node,
                    entries.last().map(|entry| &entry.value),
                    entries.first().map(|entry| &entry.key),
                    indent,
                );
            }
            Shape::List { items, .. } => {
                for item in items {
                    self.above(item.first(), indent);
                    let begun = self.out.len();
                    self.value_at(item, indent + STEP);
                    // The first line of the item begins with its dash, in place of its last two spaces.
                    let dash = begun + indent..begun + indent + STEP;
                    if self.out.get(dash.clone()) == Some("  ") {
                        self.out.replace_range(dash, "- ");
                    }
                }
                self.below(node, items.last(), items.first(), indent);
            }
            Shape::Word(_) | Shape::Block { .. } => {}
        }
    }

    /// Comments at the end of a collection that belong to it, as their columns tell.
    fn below(&mut self, node: &Node<'s>, last: Option<&Node<'s>>, first: Option<&Node<'s>>, indent: usize) {
        let flow = matches!(
            node.shape,
            Shape::Map { flow: true, .. } | Shape::List { flow: true, .. }
        );
        let Some((last, first)) = last.zip(first) else { return };
        let column = self.tree.column(first.first());
        let limit = self.next_leaf(last.end.max(last.start + 1));
        while let Some(comment) = self
            .comment()
            .filter(|comment| comment.own_line && comment.start < limit)
        {
            let inside = if flow {
                comment.start < node.end
            } else {
                indent > 0 && self.tree.column(comment.start) >= column
            };
            if !inside {
                return;
            }
            self.above(comment.start + 1, indent);
        }
    }

    fn entry(&mut self, entry: &Entry<'s>, indent: usize, padding: usize) {
        let key = word(&entry.key);
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.out.push_str(&key);
        self.out.push(':');
        let column = indent + key.len() + 1 + padding;
        let value = &entry.value;
        if let Some(text) = self.fits(value, column) {
            if !text.is_empty() {
                self.out.extend(std::iter::repeat_n(' ', padding));
                self.out.push_str(&text);
            }
            self.behind(value.end.max(entry.key.end), indent);
            return;
        }
        if !value.prefix.is_empty() {
            self.out.push(' ');
            self.out.push_str(value.prefix);
        }
        match &value.shape {
            Shape::Word(text) => {
                self.out.push(' ');
                self.folded(text, indent + STEP);
                self.behind(value.end, indent);
            }
            Shape::Block { raw, lead } => {
                self.out.push(' ');
                self.block(raw, *lead, indent + STEP);
            }
            Shape::List { .. } | Shape::Map { .. } => {
                self.behind(entry.key.end, indent + STEP);
                self.collection(value, indent + STEP);
            }
        }
    }

    /// A value on lines of its own.
    fn value_at(&mut self, value: &Node<'s>, indent: usize) {
        match (&value.shape, self.fits(value, indent)) {
            (Shape::Map { .. } | Shape::List { .. }, None) => {
                self.anchor(value, indent);
                self.collection(value, indent);
            }
            _ => self.inline_line(value, indent),
        }
    }

    /// The anchor of a collection on lines of its own, and what stands behind it.
    fn anchor(&mut self, value: &Node<'s>, indent: usize) {
        if !value.prefix.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(value.prefix);
            self.behind(value.start, indent);
        }
    }

    fn inline_line(&mut self, value: &Node<'s>, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        match (&value.shape, self.fits(value, indent)) {
            (_, Some(text)) => {
                self.out.push_str(&text);
                self.behind(value.end, indent);
            }
            (Shape::Block { raw, lead }, None) => {
                if !value.prefix.is_empty() {
                    self.out.push_str(value.prefix);
                    self.out.push(' ');
                }
                self.block(raw, *lead, indent);
            }
            (Shape::Word(text), None) => {
                self.folded(text, indent);
                self.behind(value.end, indent);
            }
            _ => {}
        }
    }

    /// A scalar of several lines, whose indentation means nothing.
    fn folded(&mut self, text: &str, indent: usize) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.out.push('\n');
                if !line.trim().is_empty() {
                    self.out.extend(std::iter::repeat_n(' ', indent));
                }
            }
            self.out.push_str(if at > 0 { line.trim() } else { line.trim_end() });
        }
    }

    /// A block scalar, whose text is one step further in than what it belongs to.
    fn block(&mut self, raw: &str, lead: usize, indent: usize) {
        let mut lines = raw.split('\n');
        let header = lines.next().unwrap_or_default().trim_end();
        let (marks, rest) = header.split_at(header.find(' ').unwrap_or(header.len()));
        // Where it says how far in it is, that is how far in it is now.
        let step = |c: char| if c.is_ascii_digit() { STEP_DIGIT } else { c };
        self.out.extend(marks.chars().map(step));
        self.out.push_str(rest);
        self.out.push('\n');
        let lines: Vec<&str> = lines.map(|line| line.trim_end_matches('\r')).collect();
        let first = lines
            .iter()
            .find(|line| !line.trim().is_empty())
            .copied()
            .unwrap_or_default();
        let old = (first.len() - first.trim_start_matches(' ').len()).saturating_sub(lead);
        let used = lines.iter().rposition(|line| !line.trim().is_empty());
        let used = match (marks.contains('+'), lines.split_last()) {
            // Every line counts; the last is no line, but the end of the one before.
            (true, Some((last, _))) if last.trim().is_empty() => lines.len() - 1,
            (true, _) => lines.len(),
            (false, _) => used.map_or(0, |at| at + 1),
        };
        for line in lines.iter().take(used) {
            let line = line.get(old..).unwrap_or_default();
            self.line(indent, line);
        }
    }

    /// The value on one line, where it has room from a column on and nothing in it needs a line of its own.
    fn fits(&self, value: &Node<'s>, column: usize) -> Option<String> {
        let mut text = String::new();
        let commented = || {
            let at = self
                .tree
                .comments
                .partition_point(|comment| comment.start < value.start);
            self.tree
                .comments
                .get(at)
                .is_some_and(|comment| comment.start < value.end)
        };
        let scalar = match &value.shape {
            Shape::Word(_) => true,
            Shape::Block { .. } => false,
            // What is empty has no line to put a comment on: it comes behind.
            Shape::List { items, .. } => items.is_empty(),
            Shape::Map { entries, .. } => entries.is_empty(),
        };
        let whole = inline(value, &mut text) && (scalar || !commented());
        let room = scalar || column + text.chars().count() <= WIDTH;
        (whole && room).then_some(text)
    }
}

/// Appends a value on one line; false where it has several.
fn inline(value: &Node<'_>, out: &mut String) -> bool {
    if !value.prefix.is_empty() {
        out.push_str(value.prefix);
        out.push(' ');
    }
    match &value.shape {
        Shape::Word(text) => {
            out.push_str(text);
            !text.contains('\n')
        }
        Shape::Block { .. } => false,
        Shape::List { items, flow } => {
            out.push('[');
            let whole = items.iter().enumerate().all(|(at, item)| {
                out.push_str(if at > 0 { ", " } else { "" });
                inline(item, out)
            });
            out.push(']');
            whole && (*flow || items.is_empty())
        }
        Shape::Map { entries, flow } => {
            if entries.is_empty() {
                out.push_str("{}");
                return true;
            }
            out.push_str("{ ");
            let whole = entries.iter().enumerate().all(|(at, entry)| {
                out.push_str(if at > 0 { ", " } else { "" });
                let key = inline(&entry.key, out);
                out.push(':');
                let begun = out.len();
                out.push(' ');
                let value = inline(&entry.value, out);
                if out.len() == begun + 1 {
                    out.truncate(begun);
                }
                key && value
            });
            out.push_str(" }");
            whole && *flow
        }
    }
}

fn word(node: &Node<'_>) -> String {
    let mut text = String::new();
    inline(node, &mut text);
    text
}

/// The spaces behind the colon of an entry: one, or what puts its value right below or above that of a neighbour.
fn padding(tree: &Tree<'_>, entries: &[Entry<'_>], at: usize) -> usize {
    let place = |at: usize| {
        let entry = entries.get(at)?;
        let between = tree.text.get(entry.key.end..entry.value.start)?;
        let spaces = between.strip_prefix(':')?;
        let plain = !spaces.is_empty() && spaces.bytes().all(|b| b == b' ') && !word(&entry.value).is_empty();
        plain.then(|| (tree.column(entry.value.start), spaces.len()))
    };
    let Some((column, spaces)) = place(at) else { return 1 };
    let beside = |at: Option<usize>| at.and_then(place).is_some_and(|(other, _)| other == column);
    if beside(at.checked_sub(1)) || beside(at.checked_add(1)) {
        spaces
    } else {
        1
    }
}
