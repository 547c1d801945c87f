//! Why a file could not be partitioned.

use docmill_model::Code;

use crate::filetype::FileType;

/// A file's fault. The message says what is wrong; [`PartitionError::code`] is the stable code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// Not a type docmill reads.
    #[error("{detected} files are not supported; supported are {}", FileType::supported_list())]
    Unsupported {
        /// What the file is, for people.
        detected: String,
    },
    /// A HEIC picture, and its decoder is not at hand.
    #[error("HEIC pictures are read with the library libheif, which is not at hand: {0}")]
    HeifMissing(String),
    /// Zero bytes where the format needs some.
    #[error("the file is empty, which is not a valid {0} file")]
    Empty(&'static str),
    /// Broken beyond repair.
    #[error("not a readable {format} file: {reason}")]
    Corrupt {
        /// Name of the format.
        format: &'static str,
        /// What is broken.
        reason: String,
    },
    /// A password is needed.
    #[error("the {0} file is encrypted: a password is required to open it")]
    Encrypted(&'static str),
    /// The password given does not open it.
    #[error("the password given does not open this {0} file")]
    WrongPassword(&'static str),
    /// The charset asked for does not exist.
    #[error("unknown encoding `{0}`")]
    UnknownEncoding(String),
    /// A tool is needed that was to be asked for, see [`crate::Tool::OnRequest`].
    #[error("a tool that has to be loaded first is needed to read this file")]
    ToolsNeeded,
    /// A limit of [`docmill_model::limits::ParseLimits`] was reached.
    #[error("more than {limit} {unit} (setting `limits.{setting}`)")]
    Limit {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        limit: u64,
        /// What is counted, for people.
        unit: &'static str,
    },
}

impl PartitionError {
    pub(crate) fn corrupt(format: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            format,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn limit(setting: &'static str, limit: u64, unit: &'static str) -> Self {
        Self::Limit { setting, limit, unit }
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } | Self::HeifMissing(_) => Code::FileTypeUnsupported,
            Self::Empty(_) => Code::FileEmpty,
            Self::Corrupt { .. } => Code::FileCorrupt,
            Self::Encrypted(_) => Code::FileEncrypted,
            Self::WrongPassword(_) => Code::FilePasswordWrong,
            Self::UnknownEncoding(_) => Code::EncodingUnknown,
            Self::ToolsNeeded => Code::Internal,
            Self::Limit { .. } => Code::FileLimitExceeded,
        }
    }
}
