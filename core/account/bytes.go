package account

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var byteUnits = map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// ErrNoBytes is the error of ParseBytes.
var ErrNoBytes = errors.New("must be a whole number of bytes, or of KiB, MiB, GiB or TiB, as in 20GiB")

// ParseBytes reads a number of bytes, or of a unit of 1,024, as in "20GiB".
func ParseBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTi")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit, known := byteUnits[text[len(digits):]]
	if err != nil || !known || n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, ErrNoBytes
	}
	return n * unit, nil
}
