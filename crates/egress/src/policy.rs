//! Which addresses may be reached.

use ipnet::IpNet;

/// Which addresses may be reached: all public ones, and what is allowed on top.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Private, loopback, link-local or otherwise special addresses that may be reached all the same
    /// (setting `egress.danger_allow_cidrs`).
    pub allow: Vec<IpNet>,
    /// Whether plain `http` may be used (setting `egress.allow_http`).
    pub allow_http: bool,
}

impl Policy {
    /// Everything may be reached: for commands a person runs with rights of their own.
    pub fn unguarded() -> Self {
        Self {
            allow: vec![
                IpNet::V4(ipnet::Ipv4Net::default()),
                IpNet::V6(ipnet::Ipv6Net::default()),
            ],
            allow_http: true,
        }
    }
}
