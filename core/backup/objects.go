package backup

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Object is something that a database has beside rows and large objects.
type Object struct {
	Kind      string // in the words of PostgreSQL: table, function, foreign key ...
	Name      string // quoted, as pg_identify_object writes it
	Relation  string // the quoted name of that which it is part of; empty: of none
	Extension string // the quoted name of that to which it belongs, or its relation does; empty: to none
	What      string // in short what it is, such as the columns of a table
}

// Objects is the list of all objects of a database, packed: gzip of lines, each a JSON array of the fields of an Object. A
// database of 100,000 tables takes some 5 MB.
type Objects []byte

// MaxObjectsBytes bounds the list of objects, unpacked. 100,000 tables of ten columns are half of that.
const MaxObjectsBytes = 128 << 20

// Packer packs a list of objects. The same objects in the same order are the same bytes.
type Packer struct {
	packed bytes.Buffer
	zip    *gzip.Writer
}

// NewPacker returns one that has no object yet.
func NewPacker() *Packer {
	p := &Packer{}
	p.zip = gzip.NewWriter(&p.packed)
	return p
}

// Add packs one more, and says how many bytes it is unpacked.
func (p *Packer) Add(o Object) (size int, err error) {
	line, err := json.Marshal([...]string{o.Kind, o.Name, o.Relation, o.Extension, o.What})
	if err != nil {
		return 0, err
	}
	return p.zip.Write(append(line, '\n'))
}

// Objects are those that were added.
func (p *Packer) Objects() (Objects, error) {
	err := p.zip.Close()
	return p.packed.Bytes(), err
}

// Each calls do for each object, in their order. A list may be another server's: one that unpacks to more than MaxObjectsBytes is
// refused before it is read into memory.
func (l Objects) Each(do func(Object)) error {
	if len(l) == 0 {
		return nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(l))
	if err != nil {
		return fmt.Errorf("the list of objects: %w", err)
	}
	text := &io.LimitedReader{R: zip, N: MaxObjectsBytes + 1}
	for lines := json.NewDecoder(text); ; {
		var f [5]string
		switch err := lines.Decode(&f); {
		case text.N <= 0:
			return fmt.Errorf("the list of objects is longer than %d bytes", MaxObjectsBytes)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the list of objects: %w", err)
		}
		do(Object{f[0], f[1], f[2], f[3], f[4]})
	}
}

// mostUnlike bounds how many objects of one list that are not in the other are told of.
const mostUnlike = 10_000

// compareObjects says what is in one list and not in the other. Of what is part of a missing relation it says nothing.
func compareObjects(want, got Objects) ([]Difference, error) {
	if bytes.Equal(want, got) {
		return nil, nil
	}
	balance := map[[16]byte]int{}
	count := func(by int) func(Object) {
		return func(o Object) {
			if key := o.key(); balance[key]+by == 0 {
				delete(balance, key)
			} else {
				balance[key] += by
			}
		}
	}
	var missing, extra []Object
	keep := func(list *[]Object, sign int) func(Object) {
		return func(o Object) {
			if balance[o.key()]*sign > 0 && len(*list) < mostUnlike {
				*list = append(*list, o)
			}
		}
	}
	err := cmp.Or(want.Each(count(1)), got.Each(count(-1)), want.Each(keep(&missing, 1)), got.Each(keep(&extra, -1)))
	return unlike(missing, extra), err
}

// key is the same for equal objects, as servers of whichever version write them.
func (o Object) key() [16]byte {
	name := o.Name
	if strings.Contains(name, "pg_catalog.json") {
		name = json16.ReplaceAllString(name, "json")
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{o.Kind, name, o.Relation, o.Extension, o.What}, "\x00")))
	return [16]byte(sum[:])
}

// json16 is the type json in the names of casts and operators as PostgreSQL 16 writes it. From 17 on it is a word of its own, and
// has no schema there.
var json16 = regexp.MustCompile(`\bpg_catalog\.json\b`)

// unlike pairs what is missing with what is there in its place.
func unlike(missing, extra []Object) []Difference {
	var found []Difference
	at := map[[2]string]int{}
	for _, o := range missing {
		at[[2]string{o.Kind, o.Name}] = len(found)
		found = append(found, Difference{Kind: o.Kind, Object: o.Name, Want: o.String(), Extension: o.Extension, of: o.Relation})
	}
	for _, o := range extra {
		if i, ok := at[[2]string{o.Kind, o.Name}]; ok {
			found[i].Got = o.String()
			continue
		}
		found = append(found, Difference{Kind: o.Kind, Object: o.Name, Got: o.String(), Extension: o.Extension, of: o.Relation})
	}
	whole := map[string]bool{} // relations that only one of the two has
	for _, d := range found {
		if d.of == "" && (d.Want == "" || d.Got == "") {
			whole[d.Object] = true
		}
	}
	return slices.DeleteFunc(found, func(d Difference) bool { return whole[d.of] })
}

// String is never empty: an empty text would say that there is none.
func (o Object) String() string { return cmp.Or(o.What, "one") }

// membership says of the differences in rows and sequences to which extension each belongs.
func membership(list Objects, found []Difference) error {
	at := map[string][]int{}
	for i, d := range found {
		at[d.Object] = append(at[d.Object], i)
	}
	if len(at) == 0 {
		return nil
	}
	return list.Each(func(o Object) {
		if o.Relation == "" && o.Extension != "" && (o.Kind == "table" || o.Kind == "sequence") {
			for _, i := range at[o.Name] {
				found[i].Extension = o.Extension
			}
		}
	})
}

// LeftOut says which objects that belong to an extension a copy has not, though it has the extension. The copy need not be loaded
// to its end: no dump holds these.
func LeftOut(want Manifest, got Contents) ([]Difference, error) {
	has := map[string]bool{}
	err := got.Objects.Each(func(o Object) { has[o.Extension] = true })
	if err != nil {
		return nil, err
	}
	found, err := compareObjects(want.Contents.Objects, got.Objects)
	return slices.DeleteFunc(found, func(d Difference) bool {
		return d.Extension == "" || !has[d.Extension] || d.of != "" || d.Got != ""
	}), err
}

// Explain is the Summary of what differs with, where an extension is why, the way out.
func Explain(found []Difference) string {
	text := Summary(found)
	if len(found) > 0 {
		text += found[0].wayOut()
	}
	return text
}

// The turns in which differences are told of: those that come first have a way out.
const (
	addedToExtension = iota
	changedInExtension
	otherwise
)

func (d Difference) turn() int {
	switch {
	case d.Extension == "":
		return otherwise
	case d.Got == "" && d.of == "":
		return addedToExtension
	default:
		return changedInExtension
	}
}

func (d Difference) wayOut() string {
	switch d.turn() {
	case addedToExtension:
		kind := strings.ToUpper(d.Kind) //nolint:forbidigo // it is a word of PostgreSQL's, and names nothing
		return fmt.Sprintf("; no dump holds what was added to an extension: after ALTER EXTENSION %s DROP %s %s, a new backup has it",
			d.Extension, kind, d.Object)
	case changedInExtension:
		return "; no dump holds what was changed in an extension's own objects: keep it in objects of your own"
	default:
		return ""
	}
}
