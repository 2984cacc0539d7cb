package mail

import (
	"net/mail"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// maxLocal and maxAddress are the lengths that every mail server takes (RFC 5321).
const (
	maxLocal   = 64
	maxAddress = 254
)

// CheckRecipient returns VALIDATION_ERROR on "email" for an address that a mail server may not take, or take for anything but
// one address: it has ASCII characters only, and is written without quotes, comments and a name.
func CheckRecipient(address string) error {
	for i := range len(address) {
		if address[i] <= ' ' || address[i] >= 0x7f {
			return fault.Invalid("email", "must have printable ASCII characters only; write an international domain as xn--...")
		}
	}
	local, _, _ := strings.Cut(address, "@")
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || parsed.Name != "" || len(local) > maxLocal || len(address) > maxAddress ||
		strings.ContainsAny(address, `"()<>[]:;,\`) {
		return fault.Invalid("email", "must be a mail address")
	}
	return nil
}
