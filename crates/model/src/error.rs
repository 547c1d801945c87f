//! The closed list of error codes.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $hint:literal;)+) => {
        /// A stable error code: in answers, in failed-file records, in logs and in the documentation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$name),+];

            /// The code as written on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text),+ }
            }

            /// HTTP status of an answer with this code. For a file that failed inside a job, where no
            /// answer is involved, the status the same failure has when a file is sent alone.
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status),+ }
            }

            /// What the reader can do about it.
            pub fn hint(self) -> &'static str {
                match self { $(Code::$name => $hint),+ }
            }
        }
    };
}

codes! {
    // Requests.
    /// No API key came with the request.
    ApiKeyMissing = "api_key_missing", 401, "send the key in the header `service-api-key` or `unstructured-api-key`, or as `Authorization: Bearer`";
    /// The key or token is unknown, expired or revoked.
    ApiKeyInvalid = "api_key_invalid", 401, "check the key, or create one with `docmill keys create`";
    /// No such object in the key's workspace, or no such route.
    NotFound = "not_found", 404, "check the id and that the key belongs to the object's workspace";
    /// The route exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405, "see `/docs` for the operations there are";
    /// The request can't be read as HTTP form or JSON.
    RequestMalformed = "request_malformed", 400, "see `/docs` for what the operation takes";
    /// A field is missing or has a value that is not allowed.
    ValidationFailed = "validation_failed", 422, "`detail` says which field and why";
    /// The node chain is not one docmill can run.
    ChainInvalid = "chain_invalid", 422, "`detail` says which node and why";
    /// The body is of a type the operation does not take.
    UnsupportedMediaType = "unsupported_media_type", 415, "the message says which content type the operation takes";
    /// More files than a job may have.
    TooManyFiles = "too_many_files", 422, "split the files over several jobs, or raise `limits.max_files_per_job`";
    /// A file larger than allowed.
    FileTooLarge = "file_too_large", 413, "send a smaller file, or raise `limits.max_file_bytes`";
    /// A form field or the request's structure larger than allowed.
    RequestTooLarge = "request_too_large", 413, "send less, or raise the limit the message names";
    /// Jobs created, codes or tests asked for too fast or too often.
    RateLimited = "rate_limited", 429, "wait as long as `Retry-After` says; the message names the setting";
    /// The client sent its request too slowly.
    RequestTimeout = "request_timeout", 408, "send the request faster, or raise `limits.request_timeout_secs`";
    /// The job has ended or has not, and the operation needs the opposite.
    JobStateConflict = "job_state_conflict", 409, "wait for the job to end, or cancel it";
    /// The output is not there (yet).
    OutputNotReady = "output_not_ready", 404, "poll the job until it is COMPLETED; a failed file has no output";
    /// The store or the disk can't be written now.
    StorageUnavailable = "storage_unavailable", 503, "check free space and permissions of the data directory, then retry";
    /// The server is shutting down.
    ShuttingDown = "shutting_down", 503, "retry when the server is back";
    /// A fault of docmill's own.
    Internal = "internal_error", 500, "look up the request id in the server's log";

    /// The workflow's state forbids the operation: inactive, running, deleted.
    WorkflowStateConflict = "workflow_state_conflict", 409, "the message says what is in the way";
    /// The connector is used by workflows.
    ConnectorInUse = "connector_in_use", 409, "take the connector out of the workflows the message names, or delete them";
    /// A `key` another live object of the workspace has.
    KeyTaken = "key_taken", 409, "choose another `key`, or leave it out to have one made";

    /// The channel's mailbox is not verified.
    ChannelNotVerified = "channel_not_verified", 409, "verify the channel with the code from the mail, or have another sent";
    /// The channel's type or state forbids the operation.
    ChannelStateConflict = "channel_state_conflict", 409, "the message says what is in the way";
    /// As many channels as the workspace or workflow may have.
    TooManyChannels = "too_many_channels", 409, "delete a channel, or raise `channels.max_per_scope`";
    /// The verification code is not the one that was sent last.
    VerificationCodeWrong = "verification_code_wrong", 400, "use the code of the latest mail";
    /// The verification code is too old, or none was sent.
    VerificationCodeExpired = "verification_code_expired", 400, "have another code sent";
    /// Too many wrong codes.
    VerificationAttemptsExceeded = "verification_attempts_exceeded", 429, "have another code sent; if `Retry-After` is given, not before";

    // Files.
    /// A type of file docmill does not read.
    FileTypeUnsupported = "file_type_unsupported", 415, "convert the file to one of the types the message lists";
    /// No bytes where the format needs some.
    FileEmpty = "file_empty", 422, "send the file's content";
    /// The file breaks its format's rules beyond repair.
    FileCorrupt = "file_corrupt", 422, "open and save the file with the program that made it";
    /// A password is needed.
    FileEncrypted = "file_encrypted", 422, "remove the protection, or give the password";
    /// The password given is wrong.
    FilePasswordWrong = "file_password_wrong", 422, "give the right password";
    /// The named charset does not exist.
    EncodingUnknown = "encoding_unknown", 422, "use a name of the WHATWG encoding standard, such as `utf-8`";
    /// The file needs more than a parser may use: expanded size, depth, elements, pages, cells.
    FileLimitExceeded = "file_limit_exceeded", 422, "the message names the limit and its setting under `limits`";
    /// The child process reached its memory limit.
    MemoryLimit = "memory_limit", 422, "raise `limits.task_memory_bytes`";
    /// The child process reached its limit of CPU time.
    CpuLimit = "cpu_limit", 422, "raise `limits.task_cpu_secs`";
    /// The file took longer than its deadline, or made no progress for too long.
    TaskTimeout = "task_timeout", 422, "raise `limits.task_timeout_secs` or `limits.task_stall_secs`";
    /// The child process ended without an answer.
    TaskCrashed = "task_crashed", 500, "report the file; other files are not affected";
    /// The child process answered with something that is no result.
    TaskOutputInvalid = "task_output_invalid", 500, "report the file; other files are not affected";
    /// The output is larger than allowed.
    OutputTooLarge = "output_too_large", 422, "split the document, or raise `limits.max_output_bytes`";
    /// The source or destination can't be reached, or failed.
    ConnectorUnavailable = "connector_unavailable", 502, "check that the service is up and reachable, then retry the job";
    /// The source or destination refuses the credentials, or a setting of the server forbids the connection.
    ConnectorRefused = "connector_refused", 422, "check the connector's credentials and rights with a connection check";
    /// The settings of a connector can't work.
    ConnectorInvalid = "connector_invalid", 422, "correct the connector's settings";
    /// The object is not at its source any more, or the place it should go to does not exist.
    ConnectorObjectMissing = "connector_object_missing", 422, "check that the object, bucket, table or index exists";
    /// A model provider refuses the key, or its settings can't work.
    ProviderRefused = "provider_refused", 422, "check the key and the settings `providers.<name>`, then retry the job";
    /// A model provider does not take the request: no such model, or a parameter or text it can't take.
    ProviderInvalid = "provider_invalid", 422, "check the model's name and the node's settings";
    /// A model provider can't be reached, is overloaded, or failed, after every retry.
    ProviderUnavailable = "provider_unavailable", 502, "retry the job later; what was paid is not paid again";
    /// A model's answers can't be used.
    ProviderAnswerInvalid = "provider_answer_invalid", 502, "retry the job, or use another model";
    /// The workspace's budget for model providers is used up for this month.
    BudgetExceeded = "budget_exceeded", 422, "wait for the next month, or raise `budget.per_workspace_per_month`; what was paid is not paid again";
    /// What a node is given does not fit its model: a text is too long.
    NodeInputTooLong = "node_input_too_long", 422, "put a chunk node with a smaller maximum before the node";
    /// The server stopped again and again while it processed the file.
    AttemptsExhausted = "attempts_exhausted", 500, "retry the job; if it happens again look at the server's log";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Code {
    /// For 5xx answers: whether sending the same request again can help.
    pub fn retryable(self) -> bool {
        matches!(self, Self::StorageUnavailable | Self::ShuttingDown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_snake_case() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} twice");
            assert!(code.as_str().chars().all(|c| c.is_ascii_lowercase() || c == '_'));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
