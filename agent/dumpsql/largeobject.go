package dumpsql

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strconv"
)

const (
	opensObject  = "SELECT pg_catalog.lo_open('"
	writesObject = `SELECT pg_catalog.lowrite(0, '\x`
)

var errLargeObject = errors.New("a large object's data in a form that pg_dump does not write")

// largeObject reads SELECT pg_catalog.lo_open('16401', 131072); and the following SELECT pg_catalog.lowrite(0, '\x00ff');
func (p Portable) largeObject(sql []byte) error {
	if rest, ok := bytes.CutPrefix(sql, []byte(opensObject)); ok {
		number, _, _ := bytes.Cut(rest, []byte("'"))
		oid, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil {
			return errLargeObject
		}
		p.LargeObject(uint32(oid))
	}
	if bytes.HasPrefix(sql, []byte("SELECT pg_catalog.lowrite(")) {
		rest, ok := bytes.CutPrefix(sql, []byte(writesObject))
		digits, end, _ := bytes.Cut(rest, []byte("'"))
		data := make([]byte, hex.DecodedLen(len(digits)))
		if _, err := hex.Decode(data, digits); err != nil || !ok || string(end) != ");" {
			return errLargeObject
		}
		p.Content(data)
	}
	return nil
}
