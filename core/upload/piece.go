package upload

import (
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
)

// Header is the header that says which part of an upload a request carries.
const Header = "Content-Range"

const lengthHeader = "Content-Length"

// Piece is what a request to an upload carries.
type Piece struct {
	Offset int64 // of its first byte
	Size   int64 // 0: the request only asks how far the upload is
}

// Asks reports whether the request carries nothing, and asks how far the upload is.
func (p Piece) Asks() bool { return p.Size == 0 }

// Piece reads what a request says about its body of so many bytes: "bytes 0-99/1000" is a part, "bytes */1000" with an empty body
// asks how far the upload is, and without the header the body is the whole of it. VALIDATION_ERROR on the header to blame.
func (u Upload) Piece(contentRange string, length int64) (p Piece, err error) {
	if contentRange == "" {
		if length != u.SizeBytes {
			return p, fault.Invalid(lengthHeader, "must be %d, as the upload was announced, or %s must say which part it is",
				u.SizeBytes, Header)
		}
		return Piece{Size: length}, nil
	}
	p, total, ok := parseRange(contentRange)
	switch {
	case !ok:
		return p, fault.Invalid(Header, `must be of the form "bytes 0-99/1000", or "bytes */1000" to ask how far the upload is`)
	case total != u.SizeBytes:
		return p, fault.Invalid(Header, "must name %d bytes in all, as the upload was announced", u.SizeBytes)
	case length != p.Size:
		return p, fault.Invalid(lengthHeader, "must be %d, as %s says", p.Size, Header)
	}
	return p, nil
}

// parseRange reads "bytes first-last/total" and "bytes */total". What is beyond total is none.
func parseRange(s string) (p Piece, total int64, ok bool) {
	unit, rest, spaced := strings.Cut(s, " ")
	part, all, named := strings.Cut(rest, "/")
	total, ok = number(all)
	if !spaced || !named || !ok || !ascii.Equal(unit, "bytes") {
		return p, 0, false
	}
	if part == "*" {
		return p, total, true
	}
	from, to, _ := strings.Cut(part, "-")
	first, isFirst := number(from)
	last, isLast := number(to)
	if !isFirst || !isLast || last < first || last >= total {
		return p, 0, false
	}
	return Piece{Offset: first, Size: last - first + 1}, total, true
}

// number reads decimal digits alone, without a sign.
func number(s string) (n int64, ok bool) {
	v, err := strconv.ParseUint(s, 10, 63)
	return int64(v), err == nil
}

// RangeOf is the header Range that says which bytes have come; empty where none have.
func RangeOf(received int64) string {
	if received == 0 {
		return ""
	}
	return "bytes=0-" + strconv.FormatInt(received-1, 10)
}
