//! Renders everything that people and scripts read: sentences, tables, figures and JSON. It runs nothing.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`check`], [`claim`] | progress and result of a check; the claim of a check without findings |
//! | [`sentences`], [`caveat`], [`note`] | the sentences of verdicts, caveats and notes |
//! | [`finding`], [`race`] | one finding, one data race |
//! | [`html`] | one finding with its explanation as an HTML page |
//! | [`script`] | the result of a script |
//! | [`coverage`], [`coverage_figure`], [`coverage_table`], [`plot`] | coverage as SVG and as tables |
//! | [`json`] | results as JSON |
//! | [`notice`] | progress and notes while a check runs |
//! | [`paint`], [`source`] | colours, numbers and printing; lines of source text |

pub mod caveat;
pub mod check;
pub mod claim;
pub mod coverage;
pub mod coverage_figure;
pub mod coverage_table;
pub mod explanation;
pub mod finding;
pub mod html;
pub mod json;
pub mod note;
pub mod notice;
pub mod paint;
pub mod plot;
pub mod race;
pub mod script;
pub mod sentences;
pub mod source;
