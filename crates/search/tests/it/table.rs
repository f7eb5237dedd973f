//! The table of strategies and the page that describes them name the same strategies and options.

use heisen_search::{Class, TABLE};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of the page's tables whose first cell is code: its first word, and the last cell.
fn rows(section: &str) -> Vec<(&str, &str)> {
    let cells =
        |line: &'static str| -> Vec<&str> { line.trim_matches('|').split('|').map(str::trim).collect() };
    PAGE.split("\n## ")
        .find(|part| part.starts_with(section))
        .unwrap_or_else(|| panic!("no section {section}"))
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells = cells(line);
            let name = cells[0].trim_matches('`').split(' ').next().expect("a name");
            (name, *cells.last().expect("cells"))
        })
        .collect()
}

const PAGE: &str = include_str!("../../../../docs/reference/strategies.md");

#[test]
fn the_page_and_the_table_name_the_same_strategies() {
    for (section, class) in [("Systematic strategies", Class::Systematic), ("Samplers", Class::Sampler)] {
        let mut described: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (name, options) in rows(section) {
            let options = options.split('`').filter(|word| word.starts_with("--"));
            described.entry(name).or_default().extend(options.map(str::to_owned));
        }
        let mut exist: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for entry in TABLE.iter().filter(|entry| entry.class == class) {
            let options = entry.takes.iter().map(|parameter| parameter.option().to_owned());
            exist.entry(entry.shown).or_default().extend(options);
        }
        assert_eq!(described, exist, "{section} in docs/reference/strategies.md and search/src/table.rs");
    }
}
