//! All findings for programs.
//!
//! It must not know what codes mean.

use serde_json::{Value, json};

use super::Diagnostics;
use crate::source::{Sources, Span};

pub(super) fn render(findings: &Diagnostics) -> String {
    let items = findings.items.iter().map(|item| {
        let mut entry = place(&findings.sources, item.span);
        if let Value::Object(fields) = &mut entry {
            let labels = item.labels.iter().map(|label| {
                let mut entry = place(&findings.sources, label.span);
                if let Value::Object(fields) = &mut entry {
                    fields.insert("message".to_owned(), json!(label.text));
                }
                entry
            });
            fields.insert("code".to_owned(), json!(item.code.as_str()));
            fields.insert("severity".to_owned(), json!(item.severity.as_str()));
            fields.insert("level".to_owned(), json!(item.code.level().map(super::Level::as_str)));
            fields.insert("message".to_owned(), json!(item.message));
            fields.insert("labels".to_owned(), labels.collect());
            fields.insert("help".to_owned(), json!(item.help));
        }
        entry
    });
    // A list of plain values has a text.
    serde_json::to_string_pretty(&items.collect::<Value>()).unwrap_or_default()
}

fn place(sources: &Sources, span: Span) -> Value {
    let Some(source) = sources.get(span.file) else {
        return json!({});
    };
    let (start, end) = (source.position(span.start), source.position(span.end));
    json!({
        "file": source.path().to_string_lossy(),
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
    })
}
