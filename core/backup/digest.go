package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math/bits"
	"strconv"
)

// TableDigest stands for the contents of a table, whatever the order of its rows: Sum is the sum modulo 2^256 of the SHA-256 of
// each line that COPY writes for it, without the line's end. Unlike an exclusive or, a sum is not blind to two equal rows.
//
// It finds errors, not forgeries: somebody who chooses thousands of rows can compute others with the same sum.
// Against that, the file that a copy is restored from is bound by its own SHA-256.
//
// That of large objects has no columns. Instead of lines it is of each object: its OID in decimal, a blank, and its content.
type TableDigest struct {
	Columns []string `json:"columns,omitempty"` // in the order in which a line has their values
	Rows    int64    `json:"rows"`
	Sum     string   `json:"sum"` // 64 lower-case hex digits, the most significant first
}

// String is short: a difference is shown to the customer.
func (d TableDigest) String() string {
	return strconv.FormatInt(d.Rows, 10) + " with digest " + d.Sum[:min(len(d.Sum), 16)] + "..."
}

// DigestSettings are the settings of PostgreSQL on which the text of a value depends, with their values as SHOW has them. Both
// sides of a comparison have these, whatever the defaults of a database or a login are.
func DigestSettings() map[string]string {
	return map[string]string{
		"client_encoding": "UTF8", "search_path": "", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "extra_float_digits": "3",
		"bytea_output": "hex", "TimeZone": "UTC", "lc_monetary": "C", "quote_all_identifiers": "off",
	}
}

// HasDigests reports whether the contents themselves can be compared, and not only numbers of rows.
func (c Contents) HasDigests() bool { return len(c.DigestSettings) > 0 }

func (c Contents) checkDigests() error {
	known := DigestSettings()
	for name := range c.DigestSettings {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("%w: digests with the setting %q", ErrManifest, name)
		}
	}
	if c.HasDigests() != (c.LargeObjectDigest != nil) || !c.HasDigests() && len(c.Digests) > 0 {
		return fmt.Errorf("%w: some of its digests are missing", ErrManifest)
	}
	for name, d := range c.Digests {
		if !isSum(d.Sum) {
			return fmt.Errorf("%w: bad digest of %s", ErrManifest, name)
		}
	}
	if d := c.LargeObjectDigest; d != nil && !isSum(d.Sum) {
		return fmt.Errorf("%w: bad digest of large objects", ErrManifest)
	}
	return nil
}

// Sum adds up SHA-256 sums modulo 2^256.
type Sum struct {
	n     int64
	limbs [sha256.Size / 8]uint64 // the least significant first
}

// Add adds one.
func (s *Sum) Add(sum []byte) {
	one := Sum{n: 1}
	for i := range one.limbs {
		one.limbs[i] = binary.BigEndian.Uint64(sum[sha256.Size-8*(i+1):])
	}
	s.Merge(one)
}

// Merge adds what the other sum has added.
func (s *Sum) Merge(other Sum) {
	var carry uint64
	for i := range s.limbs {
		s.limbs[i], carry = bits.Add64(s.limbs[i], other.limbs[i], carry)
	}
	s.n += other.n
}

// Digest is the result so far.
func (s *Sum) Digest(columns []string) TableDigest {
	var text [sha256.Size]byte
	for i, limb := range s.limbs {
		binary.BigEndian.PutUint64(text[sha256.Size-8*(i+1):], limb)
	}
	return TableDigest{Columns: columns, Rows: s.n, Sum: hex.EncodeToString(text[:])}
}

// LineSum is the sum over the lines that are written to it, in pieces of any size. It keeps no line. A line counts once its end
// is written.
type LineSum struct {
	Sum
	begun hash.Hash // of a line whose end is not written yet; nil between lines
}

// Write never fails.
func (s *LineSum) Write(p []byte) (int, error) {
	size := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		s.endLine(p[:end])
		p = p[end+1:]
	}
	if len(p) > 0 {
		if s.begun == nil {
			s.begun = sha256.New()
		}
		s.begun.Write(p)
	}
	return size, nil
}

func (s *LineSum) endLine(rest []byte) {
	if s.begun == nil {
		sum := sha256.Sum256(rest)
		s.Add(sum[:])
		return
	}
	s.begun.Write(rest)
	s.Add(s.begun.Sum(nil))
	s.begun = nil
}

// LargeObjectHash begins the hash of a large object, to which its content is to be written.
func LargeObjectHash(oid uint32) hash.Hash {
	h := sha256.New()
	fmt.Fprintf(h, "%d ", oid)
	return h
}
