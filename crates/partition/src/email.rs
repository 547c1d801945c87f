//! Reader of email files.

use crate::context::Context;
use crate::error::PartitionError;

pub(crate) fn partition(_bytes: &[u8], _cx: &mut Context) -> Result<(), PartitionError> {
    Err(PartitionError::Unsupported {
        detected: "EMAIL".into(),
    })
}
