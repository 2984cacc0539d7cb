package admin

import (
	"strconv"

	"github.com/pgherd/pgherd/core/account"
)

// byteCount is the value of a flag: see account.ParseBytes.
type byteCount int64

// Set implements pflag.Value.
func (b *byteCount) Set(text string) error {
	n, err := account.ParseBytes(text)
	if err == nil {
		*b = byteCount(n)
	}
	return err
}

// String implements pflag.Value.
func (b *byteCount) String() string { return strconv.FormatInt(int64(*b), 10) }

// Type implements pflag.Value.
func (*byteCount) Type() string { return "bytes" }
