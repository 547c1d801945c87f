//! Office Math (OMML) to LaTeX.

use super::xml::{Child, Node, Ns};

/// The LaTeX of an `m:oMath` element.
pub(crate) fn latex(math: &Node) -> String {
    let mut out = String::new();
    children(math, &mut out);
    out.trim().to_owned()
}

fn children(node: &Node, out: &mut String) {
    for child in &node.children {
        if let Child::Element(child) = child {
            element(child, out);
        }
    }
}

fn element(node: &Node, out: &mut String) {
    if node.ns != Ns::M {
        // Revisions and other wrappers of WordprocessingML.
        if !matches!(&*node.name, "del" | "moveFrom" | "rPr") {
            children(node, out);
        }
        return;
    }
    match &*node.name {
        "t" => symbols(&node.text(), out),
        "f" => fraction(node, out),
        "sSup" => scripts(node, &[("^", "sup")], out),
        "sSub" => scripts(node, &[("_", "sub")], out),
        "sSubSup" => scripts(node, &[("_", "sub"), ("^", "sup")], out),
        "sPre" => {
            out.push_str("{}");
            script(node, "_", "sub", out);
            script(node, "^", "sup", out);
            out.push_str(&group(&part(node, "e")));
        }
        "rad" => {
            let degree = part(node, "deg");
            let degree = degree.trim();
            out.push_str("\\sqrt");
            if !degree.is_empty() {
                out.push_str(&format!("[{degree}]"));
            }
            out.push_str(&format!("{{{}}}", part(node, "e")));
        }
        "nary" => nary(node, out),
        "d" => delimiters(node, out),
        "func" => {
            push_command(&function_name(&part(node, "fName")), out);
            out.push_str(&braced_or_bare(&part(node, "e")));
        }
        "acc" => {
            let command = accent(property(node, "accPr", "chr").unwrap_or("\u{302}"));
            out.push_str(&format!("{command}{{{}}}", part(node, "e")));
        }
        "bar" => {
            let top = property(node, "barPr", "pos") == Some("top");
            let command = if top { "\\overline" } else { "\\underline" };
            out.push_str(&format!("{command}{{{}}}", part(node, "e")));
        }
        "groupChr" => {
            let top = property(node, "groupChrPr", "pos") == Some("top");
            let command = if top { "\\overbrace" } else { "\\underbrace" };
            out.push_str(&format!("{command}{{{}}}", part(node, "e")));
        }
        "limLow" => limit(node, "_", "\\underset", out),
        "limUpp" => limit(node, "^", "\\overset", out),
        "borderBox" => out.push_str(&format!("\\boxed{{{}}}", part(node, "e"))),
        "m" => matrix(node, out),
        "eqArr" => {
            let lines: Vec<String> = node.elements().filter(|n| n.is(Ns::M, "e")).map(content).collect();
            out.push_str(&format!("\\begin{{aligned}}{}\\end{{aligned}}", lines.join(" \\\\ ")));
        }
        "rPr" | "ctrlPr" => {}
        name if name.ends_with("Pr") => {}
        _ => children(node, out),
    }
}

fn content(node: &Node) -> String {
    let mut out = String::new();
    children(node, &mut out);
    out.trim().to_owned()
}

fn part(node: &Node, name: &str) -> String {
    node.child(Ns::M, name).map(content).unwrap_or_default()
}

fn property<'n>(node: &'n Node, properties: &str, name: &str) -> Option<&'n str> {
    node.path(Ns::M, &[properties, name])
        .map(|n| n.attr("val").unwrap_or(""))
}

fn fraction(node: &Node, out: &mut String) {
    let (over, under) = (part(node, "num"), part(node, "den"));
    match property(node, "fPr", "type") {
        Some("lin" | "skw") => out.push_str(&format!("{}/{}", braced_or_bare(&over), braced_or_bare(&under))),
        Some("noBar") => out.push_str(&format!("\\genfrac{{}}{{}}{{0pt}}{{}}{{{over}}}{{{under}}}")),
        _ => out.push_str(&format!("\\frac{{{over}}}{{{under}}}")),
    }
}

fn scripts(node: &Node, which: &[(&str, &str)], out: &mut String) {
    out.push_str(&group(&part(node, "e")));
    for (mark, name) in which {
        script(node, mark, name, out);
    }
}

fn script(node: &Node, mark: &str, name: &str, out: &mut String) {
    let text = part(node, name);
    if !text.is_empty() {
        out.push_str(&format!("{mark}{{{text}}}"));
    }
}

/// The base of a script: in braces unless it is one character or one command.
fn group(base: &str) -> String {
    let command = base
        .strip_prefix('\\')
        .is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic()));
    if base.chars().count() == 1 || command {
        base.to_owned()
    } else {
        format!("{{{base}}}")
    }
}

fn braced_or_bare(text: &str) -> String {
    if text.chars().count() == 1 || text.starts_with("\\left") || text.starts_with('(') {
        text.to_owned()
    } else {
        format!("{{{text}}}")
    }
}

fn nary(node: &Node, out: &mut String) {
    let operator = match property(node, "naryPr", "chr") {
        None => "\\int".to_owned(),
        Some(sign) => {
            let mut text = String::new();
            symbols(sign, &mut text);
            text.trim().to_owned()
        }
    };
    out.push_str(&operator);
    let before = out.len();
    script(node, "_", "sub", out);
    script(node, "^", "sup", out);
    let inner = part(node, "e");
    if out.len() == before && inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.push(' ');
    }
    out.push_str(&braced_or_bare(&inner));
}

fn delimiters(node: &Node, out: &mut String) {
    let open = property(node, "dPr", "begChr").unwrap_or("(");
    let close = property(node, "dPr", "endChr").unwrap_or(")");
    let separator = property(node, "dPr", "sepChr").unwrap_or("|");
    let parts: Vec<String> = node.elements().filter(|n| n.is(Ns::M, "e")).map(content).collect();
    let inner = parts.join(separator);
    // Stretching fences matter around tall content only; elsewhere plain ones read better.
    if inner.contains("\\frac") || inner.contains("\\begin") || open.is_empty() || close.is_empty() {
        out.push_str(&format!("\\left{}{inner}\\right{}", fence(open), fence(close)));
    } else {
        out.push_str(&format!("{}{inner}{}", plain_fence(open), plain_fence(close)));
    }
}

fn fence(sign: &str) -> String {
    if sign.is_empty() {
        ".".to_owned()
    } else {
        plain_fence(sign)
    }
}

fn plain_fence(sign: &str) -> String {
    match sign {
        "{" => "\\{".to_owned(),
        "}" => "\\}".to_owned(),
        other => {
            let mut text = String::new();
            symbols(other, &mut text);
            text
        }
    }
}

fn function_name(name: &str) -> String {
    const KNOWN: &[&str] = &[
        "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "arcsin", "arccos", "arctan", "log",
        "ln", "lg", "exp", "lim", "max", "min", "sup", "inf", "det", "dim", "ker", "gcd", "deg", "arg",
    ];
    let end = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
    match KNOWN.contains(&&name[..end]) {
        true => format!("\\{name}"),
        false => name.to_owned(),
    }
}

fn push_command(command: &str, out: &mut String) {
    out.push_str(command);
    if command.starts_with('\\') && command.ends_with(|c: char| c.is_ascii_alphabetic()) {
        out.push(' ');
    }
}

fn accent(sign: &str) -> &'static str {
    match sign {
        "\u{300}" => "\\grave",
        "\u{301}" => "\\acute",
        "\u{303}" | "~" => "\\tilde",
        "\u{304}" | "\u{305}" | "\u{af}" => "\\bar",
        "\u{306}" => "\\breve",
        "\u{307}" => "\\dot",
        "\u{308}" => "\\ddot",
        "\u{30c}" => "\\check",
        "\u{20d7}" | "\u{2192}" => "\\vec",
        _ => "\\hat",
    }
}

fn limit(node: &Node, mark: &str, stacked: &str, out: &mut String) {
    let (base, bound) = (part(node, "e"), part(node, "lim"));
    let name = function_name(&base);
    if name.starts_with('\\') {
        out.push_str(&format!("{name}{mark}{{{bound}}}"));
    } else {
        out.push_str(&format!("{stacked}{{{bound}}}{{{base}}}"));
    }
}

fn matrix(node: &Node, out: &mut String) {
    let rows: Vec<String> = node
        .elements()
        .filter(|n| n.is(Ns::M, "mr"))
        .map(|row| {
            let cells: Vec<String> = row.elements().filter(|n| n.is(Ns::M, "e")).map(content).collect();
            cells.join(" & ")
        })
        .collect();
    out.push_str(&format!("\\begin{{matrix}}{}\\end{{matrix}}", rows.join(" \\\\ ")));
}

/// Appends text with Greek letters and operators as commands.
fn symbols(text: &str, out: &mut String) {
    for c in text.chars() {
        let command = command(c);
        if command.is_empty() {
            if c.is_ascii_alphanumeric() {
                separate(out);
            }
            match c {
                '%' | '#' | '&' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                '\u{a0}' | '\u{2009}' | '\u{2061}' | '\u{2062}' => out.push(' '),
                '\u{2212}' => out.push('-'),
                '\u{2032}' => out.push('\''),
                c => out.push(c),
            }
        } else {
            out.push_str(command);
        }
    }
}

/// A space where a letter or digit would otherwise run into the command before it.
fn separate(out: &mut String) {
    let word = out.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
    if word > 0 && out[..out.len() - word].ends_with('\\') {
        out.push(' ');
    }
}

fn command(c: char) -> &'static str {
    match c {
        'α' => "\\alpha",
        'β' => "\\beta",
        'γ' => "\\gamma",
        'δ' => "\\delta",
        'ε' | 'ϵ' => "\\epsilon",
        'ζ' => "\\zeta",
        'η' => "\\eta",
        'θ' => "\\theta",
        'ι' => "\\iota",
        'κ' => "\\kappa",
        'λ' => "\\lambda",
        'μ' => "\\mu",
        'ν' => "\\nu",
        'ξ' => "\\xi",
        'π' => "\\pi",
        'ρ' => "\\rho",
        'σ' => "\\sigma",
        'τ' => "\\tau",
        'υ' => "\\upsilon",
        'φ' => "\\varphi",
        'ϕ' => "\\phi",
        'χ' => "\\chi",
        'ψ' => "\\psi",
        'ω' => "\\omega",
        'Γ' => "\\Gamma",
        'Δ' => "\\Delta",
        'Θ' => "\\Theta",
        'Λ' => "\\Lambda",
        'Ξ' => "\\Xi",
        'Π' => "\\Pi",
        'Σ' => "\\Sigma",
        'Φ' => "\\Phi",
        'Ψ' => "\\Psi",
        'Ω' => "\\Omega",
        '±' => "\\pm",
        '∓' => "\\mp",
        '×' => "\\times",
        '÷' => "\\div",
        '·' | '⋅' => "\\cdot",
        '∗' => "\\ast",
        '≤' => "\\leq",
        '≥' => "\\geq",
        '≠' => "\\neq",
        '≈' => "\\approx",
        '≡' => "\\equiv",
        '∼' => "\\sim",
        '∝' => "\\propto",
        '≪' => "\\ll",
        '≫' => "\\gg",
        '∞' => "\\infty",
        '∂' => "\\partial",
        '∇' => "\\nabla",
        '∈' => "\\in",
        '∉' => "\\notin",
        '⊂' => "\\subset",
        '⊆' => "\\subseteq",
        '∪' => "\\cup",
        '∩' => "\\cap",
        '∅' => "\\emptyset",
        '∀' => "\\forall",
        '∃' => "\\exists",
        '∧' => "\\wedge",
        '∨' => "\\vee",
        '¬' => "\\neg",
        '→' => "\\rightarrow",
        '←' => "\\leftarrow",
        '↔' => "\\leftrightarrow",
        '⇒' => "\\Rightarrow",
        '⇔' => "\\Leftrightarrow",
        '…' => "\\ldots",
        '⋯' => "\\cdots",
        '∑' => "\\sum",
        '∏' => "\\prod",
        '∫' => "\\int",
        '∬' => "\\iint",
        '∭' => "\\iiint",
        '∮' => "\\oint",
        '√' => "\\surd",
        '°' => "^{\\circ}",
        '⋃' => "\\bigcup",
        '⋂' => "\\bigcap",
        '⌈' => "\\lceil",
        '⌉' => "\\rceil",
        '⌊' => "\\lfloor",
        '⌋' => "\\rfloor",
        '⟨' => "\\langle",
        '⟩' => "\\rangle",
        '‖' => "\\|",
        'ℝ' => "\\mathbb{R}",
        'ℕ' => "\\mathbb{N}",
        'ℤ' => "\\mathbb{Z}",
        'ℚ' => "\\mathbb{Q}",
        'ℂ' => "\\mathbb{C}",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ooxml::{testing::W, xml};

    fn tex(inner: &str) -> String {
        let text = format!("<m:oMath {W}>{inner}</m:oMath>");
        latex(&xml::parse(&text, "DOCX", "x", 100).unwrap())
    }

    fn run(text: &str) -> String {
        format!("<m:r><m:t>{text}</m:t></m:r>")
    }

    #[test]
    fn a_fraction_as_base_is_grouped() {
        let fraction = format!("<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", run("(x-c)"), run("v"));
        let power = format!("<m:sSup><m:e>{fraction}</m:e><m:sup>{}</m:sup></m:sSup>", run("2"));
        assert_eq!(tex(&power), "{\\frac{(x-c)}{v}}^{2}");
        let plain = format!("<m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup>", run("x"), run("2"));
        assert_eq!(tex(&plain), "x^{2}");
    }

    #[test]
    fn sums_roots_fences_and_functions() {
        let sum = format!(
            "<m:nary><m:naryPr><m:chr m:val=\"∑\"/></m:naryPr><m:sub>{}</m:sub><m:sup>{}</m:sup><m:e>{}</m:e></m:nary>",
            run("i=1"),
            run("n"),
            run("i")
        );
        assert_eq!(tex(&sum), "\\sum_{i=1}^{n}i");
        assert_eq!(
            tex(&format!("<m:rad><m:deg/><m:e>{}</m:e></m:rad>", run("x"))),
            "\\sqrt{x}"
        );
        assert_eq!(
            tex(&format!(
                "<m:rad><m:deg>{}</m:deg><m:e>{}</m:e></m:rad>",
                run("3"),
                run("x")
            )),
            "\\sqrt[3]{x}"
        );
        assert_eq!(tex(&format!("<m:d><m:e>{}</m:e></m:d>", run("a+b"))), "(a+b)");
        let sine = format!(
            "<m:func><m:fName>{}</m:fName><m:e>{}</m:e></m:func>",
            run("sin"),
            run("x")
        );
        assert_eq!(tex(&sine), "\\sin x");
        assert_eq!(tex(&run("αx≤2π")), "\\alpha x\\leq 2\\pi");
    }

    #[test]
    fn matrices() {
        let cell = |t: &str| format!("<m:e>{}</m:e>", run(t));
        let rows = format!(
            "<m:mr>{}{}</m:mr><m:mr>{}{}</m:mr>",
            cell("a"),
            cell("b"),
            cell("c"),
            cell("d")
        );
        assert_eq!(
            tex(&format!("<m:m>{rows}</m:m>")),
            "\\begin{matrix}a & b \\\\ c & d\\end{matrix}"
        );
    }
}
