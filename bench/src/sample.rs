//! One measured value, and how it travels from the process that measured it to the report: as a line of text.

use std::fmt;

/// A measured value of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The table it belongs to.
    pub table: String,
    /// What was measured: a peer.
    pub row: String,
    /// In which respect, with the unit.
    pub column: String,
    pub value: f64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, row, column, value } = self;
        write!(f, "sample\t{table}\t{row}\t{column}\t{value}")
    }
}

/// Prints a sample for the process that collects them.
pub fn emit(table: &str, row: &str, column: &str, value: f64) {
    let (table, row, column) = (table.to_owned(), row.to_owned(), column.to_owned());
    println!("{}", Sample { table, row, column, value });
}

/// Reads a line that [`emit`] printed.
pub fn parse(line: &str) -> Option<Sample> {
    let mut parts = line.split('\t');
    let ("sample", Some(table), Some(row), Some(column), Some(value)) =
        (parts.next()?, parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let (table, row, column) = (table.to_owned(), row.to_owned(), column.to_owned());
    Some(Sample { table, row, column, value: value.parse().ok()? })
}

/// How long things are measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub full: bool,
}

impl Effort {
    /// The first of two values in a full run, else the second.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        if self.full { full } else { quick }
    }
}
