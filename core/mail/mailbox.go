package mail

import "strings"

// Mailbox is what an address, as account.ValidateEmail returns it, counts as in the bounds: without its tag, since mail to
// bob+a@example.org and to bob+b@example.org commonly arrives at bob@example.org. A "+" at the beginning separates nothing. Where
// a provider ignores more than that, such as dots, it is not followed.
func Mailbox(address string) string {
	local, domain, _ := strings.Cut(address, "@")
	if base, _, tagged := strings.Cut(local, "+"); tagged && base != "" {
		return base + "@" + domain
	}
	return address
}
