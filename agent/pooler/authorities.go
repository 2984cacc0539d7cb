package pooler

import (
	"encoding/pem"
	"os"
	"strings"
)

// mostPublicCA bounds PublicCA, in bytes.
const mostPublicCA = 64 << 10

// PublicCA are the certificates of PgBouncer's certificate file in PEM, and nothing else of it: by these another server can know
// this PgBouncer. Empty where the file cannot be read, or has more than can be told.
func (s Settings) PublicCA() string {
	text, err := os.ReadFile(s.TLSCertFile)
	if err != nil || len(text) > mostPublicCA {
		return ""
	}
	var all strings.Builder
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			_ = pem.Encode(&all, block) // a Builder takes everything
		}
	}
	return all.String()
}
