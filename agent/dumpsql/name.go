package dumpsql

import (
	"regexp"
	"strings"
)

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// QuoteName joins the parts of a name, each in quotes where it is not plain. It does not know keywords, so the result is for
// comparing and showing names. For SQL, use QuoteIdentifier unless no part can be a keyword.
func QuoteName(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, part := range parts {
		if quoted[i] = part; !plainName.MatchString(part) {
			quoted[i] = QuoteIdentifier(part)
		}
	}
	return strings.Join(quoted, ".")
}

// QuoteIdentifier puts a name in quotes, always.
func QuoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Canonical brings a name as a dump has it, where some parts are quoted only because they are keywords, to QuoteName's form.
func Canonical(name string) string {
	var parts []string
	for _, t := range tokens([]byte(name)) {
		if t.text != "." {
			parts = append(parts, Unquoted(t.text))
		}
	}
	return QuoteName(parts...)
}

// Unquoted is the name that a token stands for.
func Unquoted(text string) string {
	inner, quoted := strings.CutPrefix(text, `"`)
	if !quoted {
		return text
	}
	return strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
}
