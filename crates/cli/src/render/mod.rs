//! Renders everything that people and scripts read: sentences, tables, figures and JSON. It runs nothing.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`check`], [`claim`] | progress and result of a check; the claim of a check without findings |
//! | [`sentences`], [`caveat`], [`note`] | the sentences of verdicts, caveats and notes |
//! | [`finding`], [`race`] | one finding, one data race |
//! | [`explanation`], [`difference`] | why a finding fails; two executions side by side |
//! | [`events`] | the events of one execution, and its state after a step |
//! | [`limits`] | what limits an explanation, and what would add to it |
//! | [`html`] | one finding with its explanation as an HTML page |
//! | [`script`] | the result of a script |
//! | [`coverage`], [`coverage_figure`], [`coverage_table`], [`plot`] | coverage as SVG and as tables |
//! | [`json`] | results as JSON |
//! | [`sarif`], [`junit`], [`github`] | findings for code scanning, reports of tests, and annotations of GitHub |
//! | [`chrome_trace`], [`dot`] | an execution for Perfetto and for Graphviz |
//! | [`notice`], [`progress`] | progress and notes while a check runs; a progress line for other commands |
//! | [`paint`], [`source`], [`visible`] | colours, numbers and printing; lines of source text; unsafe characters |
//! | [`place`], [`result_file`] | places in source files, as other programs name them; the files of results |

pub mod caveat;
pub mod check;
pub mod chrome_trace;
pub mod claim;
pub mod coverage;
pub mod coverage_figure;
pub mod coverage_table;
pub mod difference;
pub mod dot;
pub mod events;
pub mod explanation;
pub mod finding;
pub mod github;
pub mod html;
pub mod inputs;
pub mod json;
pub mod junit;
pub mod limits;
pub mod note;
pub mod notice;
pub mod paint;
pub mod place;
pub mod plot;
pub mod progress;
pub mod race;
pub mod result_file;
#[cfg(test)]
pub mod sample;
pub mod sarif;
pub mod script;
pub mod sentences;
pub mod source;
pub mod visible;
