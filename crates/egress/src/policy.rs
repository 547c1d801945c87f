//! Which addresses may be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

use crate::EgressError;

/// Which addresses may be reached: all public ones, and what is allowed on top.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Private, loopback, link-local or otherwise special addresses that may be reached all the same
    /// (setting `egress.danger_allow_cidrs`).
    pub allow: Vec<IpNet>,
    /// Whether plain `http` may be used (setting `egress.allow_http`).
    pub allow_http: bool,
    /// A PEM file of certificate authorities that are trusted besides those of the machine (setting
    /// `egress.ca_file`), for services that have certificates of one's own.
    pub ca_file: Option<PathBuf>,
}

/// IPv4 ranges that are no public address, from the IANA registry of special purposes and what clouds
/// use for services of the machine itself.
const SPECIAL_V4: &[(Ipv4Net, &str)] = &[
    v4(0, 0, 0, 0, 8, "an address of \"this network\""),
    v4(10, 0, 0, 0, 8, "a private address"),
    v4(100, 64, 0, 0, 10, "a carrier-grade NAT address"),
    v4(127, 0, 0, 0, 8, "a loopback address"),
    v4(168, 63, 129, 16, 32, "an address of the cloud's own services"),
    v4(169, 254, 0, 0, 16, "a link-local address"),
    v4(172, 16, 0, 0, 12, "a private address"),
    v4(192, 0, 0, 0, 24, "an address reserved for protocols"),
    v4(192, 0, 2, 0, 24, "an address reserved for documentation"),
    v4(192, 88, 99, 0, 24, "a 6to4 relay address"),
    v4(192, 168, 0, 0, 16, "a private address"),
    v4(198, 18, 0, 0, 15, "an address reserved for benchmarks"),
    v4(198, 51, 100, 0, 24, "an address reserved for documentation"),
    v4(203, 0, 113, 0, 24, "an address reserved for documentation"),
    v4(224, 0, 0, 0, 4, "a multicast address"),
    v4(240, 0, 0, 0, 4, "a reserved address"),
];

/// IPv6 ranges that are no public address; what lies outside 2000::/3 is none either.
const SPECIAL_V6: &[(Ipv6Net, &str)] = &[
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "the unspecified address"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "a loopback address"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "an IPv4-compatible address"),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "a NAT64 address"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "a NAT64 address"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "a Teredo address"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "an address reserved for protocols"),
    v6(
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        "an address reserved for documentation",
    ),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "a 6to4 address"),
    v6(
        [0x3fff, 0, 0, 0, 0, 0, 0, 0],
        20,
        "an address reserved for documentation",
    ),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private address"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "a link-local address"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "a site-local address"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "a multicast address"),
];

const PUBLIC_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Names of services that tell a machine its credentials.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.com",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

/// Ports on which something else than HTTP listens that an HTTP request could be mistaken by: the Fetch
/// standard's list of bad ports.
const BAD_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8, what: &'static str) -> (Ipv4Net, &'static str) {
    (Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits), what)
}

const fn v6(s: [u16; 8], bits: u8, what: &'static str) -> (Ipv6Net, &'static str) {
    let address = Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]);
    (Ipv6Net::new_assert(address, bits), what)
}

impl Policy {
    /// Everything may be reached: for commands a person runs with rights of their own.
    pub fn unguarded() -> Self {
        Self {
            allow: vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())],
            allow_http: true,
            ca_file: None,
        }
    }

    /// Whether an address may be reached.
    ///
    /// # Errors
    /// [`EgressError::Refused`], telling what the address is.
    pub fn check_ip(&self, ip: IpAddr) -> Result<(), EgressError> {
        let ip = ip.to_canonical();
        let refused = match ip {
            IpAddr::V4(ip) => self.special_v4(ip),
            IpAddr::V6(ip) => self.special_v6(ip),
        };
        match refused {
            None => Ok(()),
            Some(what) => Err(EgressError::Refused(format!(
                "{ip} is {what}, which this server does not connect to (setting egress.danger_allow_cidrs)"
            ))),
        }
    }

    fn allows(&self, ip: IpAddr) -> bool {
        self.allow.iter().any(|net| net.contains(&ip))
    }

    fn special_v4(&self, ip: Ipv4Addr) -> Option<&'static str> {
        let (_, what) = SPECIAL_V4.iter().find(|(net, _)| net.contains(&ip))?;
        (!self.allows(ip.into())).then_some(what)
    }

    /// An address that leads on to an IPv4 address needs both to be allowed.
    fn special_v6(&self, ip: Ipv6Addr) -> Option<&'static str> {
        let what = match SPECIAL_V6.iter().find(|(net, _)| net.contains(&ip)) {
            Some((_, what)) => what,
            None if PUBLIC_V6.contains(&ip) => return None,
            None => "a reserved address",
        };
        if !self.allows(ip.into()) {
            return Some(what);
        }
        embedded(ip).into_iter().flatten().find_map(|v4| self.special_v4(v4))
    }

    /// Whether a name may be resolved at all.
    ///
    /// # Errors
    /// [`EgressError::Refused`] for a name that stands for the machine or for its cloud's metadata.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), EgressError> {
        let bare = name.trim_end_matches('.').to_ascii_lowercase();
        let (what, address) = if METADATA_NAMES.contains(&bare.as_str()) {
            ("a cloud's metadata service", Ipv4Addr::new(169, 254, 169, 254))
        } else if bare == "localhost" || bare.ends_with(".localhost") {
            ("this machine", Ipv4Addr::LOCALHOST)
        } else {
            return Ok(());
        };
        if self.allows(address.into()) || (address.is_loopback() && self.allows(Ipv6Addr::LOCALHOST.into())) {
            return Ok(());
        }
        Err(EgressError::Refused(format!(
            "{bare} is {what}, which this server does not connect to (setting egress.danger_allow_cidrs)"
        )))
    }

    /// What can be told of a URL before its host is resolved.
    pub(crate) fn check_url(&self, url: &Url) -> Result<(), EgressError> {
        let refuse = |why: String| Err(EgressError::Refused(why));
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            "http" => return refuse("plain http is not allowed, use https (setting egress.allow_http)".into()),
            other => return refuse(format!("URLs begin with https://, not {other}:")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("the URL holds a user name or password; give credentials by the settings for them".into());
        }
        if let Some(port) = url.port().filter(|port| BAD_PORTS.contains(port)) {
            return refuse(format!("port {port} is not for HTTP"));
        }
        match url.host() {
            Some(Host::Ipv4(ip)) => self.check_ip(ip.into()),
            Some(Host::Ipv6(ip)) => self.check_ip(ip.into()),
            Some(Host::Domain(name)) => self.check_name(name),
            None => refuse("the URL names no host".into()),
        }
    }
}

/// The IPv4 addresses that an IPv6 address leads to by translation or a tunnel (RFC 6052, 3056, 4380).
fn embedded(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let s = ip.segments();
    let o = ip.octets();
    let join = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match s {
        [0x2002, ..] => [join(s[1], s[2]), None],
        [0x2001, 0, ..] => [join(s[2], s[3]), join(!s[6], !s[7])],
        // With a prefix of 48 bits the address is split around an octet of zeros.
        [0x64, 0xff9b, 1, ..] => [join(s[6], s[7]), Some(Ipv4Addr::new(o[6], o[7], o[9], o[10]))],
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => [join(s[6], s[7]), None],
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => [join(high, low), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(policy: &Policy, ip: &str) -> bool {
        policy.check_ip(ip.parse().unwrap()).is_err()
    }

    #[test]
    fn only_public_addresses_are_reached() {
        let policy = Policy::default();
        for ip in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::a00:1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "1::1",
        ] {
            assert!(refused(&policy, ip), "{ip}");
        }
        for ip in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "168.63.129.15",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00::1",
            "2003::1",
        ] {
            assert!(!refused(&policy, ip), "{ip}");
        }
    }

    #[test]
    fn what_is_allowed_is_reached_and_nothing_beside_it() {
        let policy = Policy {
            allow: vec![
                "127.0.0.0/8".parse().unwrap(),
                "64:ff9b::/96".parse().unwrap(),
                "2001::/32".parse().unwrap(),
                "2002::/16".parse().unwrap(),
                "64:ff9b:1::/48".parse().unwrap(),
            ],
            ..Policy::default()
        };
        for ip in [
            "127.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::808:808",
            "64:ff9b::7f00:1",
            "2002:808:808::1",
            "2001:0:808:808::f7f7:f7f7",
            "64:ff9b:1:808:8:800:808:808",
        ] {
            assert!(!refused(&policy, ip), "{ip}");
        }
        for ip in [
            "10.0.0.1",
            "::1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:a00:1::1",
            "2002:a9fe:a9fe::",
            // Teredo: the server, then the client, is a private address.
            "2001:0:a00:1::f7f7:f7f7",
            "2001:0:808:808::f5ff:fffe",
            // 10.0.0.1 split around the octet of zeros, then at the end.
            "64:ff9b:1:a00:0:100:808:808",
            "64:ff9b:1:808:8:800:a00:1",
        ] {
            assert!(refused(&policy, ip), "{ip}");
        }
        let all = Policy::unguarded();
        assert!(!refused(&all, "169.254.169.254") && !refused(&all, "::1") && !refused(&all, "64:ff9b::a00:1"));
    }

    #[test]
    fn urls_are_read_as_the_connection_reads_them() {
        let policy = Policy {
            allow_http: true,
            ..Policy::default()
        };
        let check =
            |url: &str| Url::parse(url).map_or(Err(EgressError::Refused("parse".into())), |url| policy.check_url(&url));
        for url in [
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://0x7f.1/",
            "http://127.0.0.1./",
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
            "http://%31%32%37.0.0.1/",
            "http://0/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
            "http://[::]/",
            "http://[fe80::1]/",
            "http://[fe80::1%25eth0]/",
            "https://user@example.com/",
            "https://:pw@example.com/",
            "https://example.com@127.0.0.1/",
            "http://127.0.0.1\\@example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "ftp://example.com/",
            "data:,x",
            "https://",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://metadata.google.internal/",
            "https://METADATA.google.internal./",
            "https://instance-data/",
            "https://example.com:22/",
            "https://example.com:25/",
            "https://example.com:0/",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
        for url in [
            "https://example.com/",
            "http://example.com:9200/x",
            "https://8.8.8.8/",
            "https://bücher.example/",
        ] {
            assert!(check(url).is_ok(), "{url}");
        }
        let strict = Policy::default();
        assert!(strict.check_url(&Url::parse("http://example.com/").unwrap()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_mapped_address_is_judged_like_the_one_it_maps(bits: u32) {
            let policy = Policy::default();
            let ip = Ipv4Addr::from(bits);
            let plain = policy.check_ip(ip.into()).is_ok();
            proptest::prop_assert_eq!(plain, policy.check_ip(ip.to_ipv6_mapped().into()).is_ok());
            proptest::prop_assert!(policy.check_ip(ip.to_ipv6_compatible().into()).is_err());
        }
    }
}
