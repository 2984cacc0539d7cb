package pooler

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// canaryDatabase exists only in the last rule but one of the HBA file: `local "pgherd_canary" "<fingerprint>" reject`. A log-in
// to it through the unix socket is always refused, but with another message if that rule was not read. PgBouncer has no command
// that shows its rules; this trick shows which HBA file it uses.
const canaryDatabase = "pgherd_canary"

var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// renderRules writes who may connect from where: for each database its own logins, from its own networks, with TLS. Names are
// always quoted (an unquoted `all` or `sameuser` is a keyword) and no line says `all`, so a database or login without a rule
// here cannot be reached.
func renderRules(entries []Entry) []byte {
	var out bytes.Buffer
	for _, e := range entries {
		if len(e.Logins) == 0 {
			continue
		}
		who := quotedList(EntryNames(e.Database)) + " " + quotedList(loginNames(e.Logins))
		for _, network := range networksOf(e) {
			fmt.Fprintf(&out, "hostssl %s %s scram-sha-256\n", who, network)
		}
	}
	return out.Bytes()
}

// localRules admits log-ins through the unix socket, which only the agent can reach, to any entry.
func localRules(canary string) []byte {
	return fmt.Appendf(nil, "local %s %s reject\nlocal all all scram-sha-256\n", quoteDouble(canaryDatabase), quoteDouble(canary))
}

func networksOf(e Entry) []netip.Prefix {
	if len(e.Allow) == 0 {
		return everywhere
	}
	sorted := slices.SortedFunc(slices.Values(Admitted(e.Allow, e.Welcome)), func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(sorted)
}

// Admitted are the networks that clients of a database come in from: those of its allowlist, where it has any, and the addresses
// that are admitted beside it.
func Admitted(allow []netip.Prefix, welcome []netip.Addr) []netip.Prefix {
	if len(allow) == 0 {
		return nil
	}
	all := slices.Clone(allow)
	for _, a := range welcome {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return all
}

func loginNames(logins []Login) []string {
	names := make([]string, 0, len(logins))
	for _, l := range descendingLogins(logins) {
		names = append(names, l.Name)
	}
	return names
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteDouble(n)
	}
	return strings.Join(quoted, ",")
}
