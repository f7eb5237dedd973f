//! Operations that would block in the kernel: their thread is disabled instead, and the others go on.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`descriptors`] | waits for descriptors to become ready |
//! | [`kernel_calls`] | calls that no descriptor announces, each on a kernel thread of its own |

pub mod descriptors;
pub mod kernel_calls;
