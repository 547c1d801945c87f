//! Reader of pdf files.

use crate::context::Context;
use crate::error::PartitionError;

pub(crate) fn partition(_bytes: &std::sync::Arc<Vec<u8>>, _cx: &mut Context) -> Result<(), PartitionError> {
    Err(PartitionError::Unsupported { detected: "PDF".into() })
}
