// Package extension has the rules of the PostgreSQL extensions that customers can have installed.
package extension

import (
	"regexp"

	"github.com/pgherd/pgherd/core/fault"
)

// Name is the name of an extension.
type Name string

// The extensions.
const (
	Citext   Name = "citext"
	PgTrgm   Name = "pg_trgm"
	PgCrypto Name = "pgcrypto"
)

// Names lists the extensions in the order of the catalog (spec, "Extension catalog entry").
var Names = []Name{Citext, PgTrgm, PgCrypto}

// ParseName takes the names of Names; VALIDATION_ERROR.
func ParseName(s string) (Name, error) { return fault.OneOf("extension", s, Names...) }

// Change is what can be done with an extension.
type Change string

// The changes.
const (
	Install Change = "install"
	Upgrade Change = "upgrade"
)

// ParseChange takes the two changes; VALIDATION_ERROR.
func ParseChange(s string) (Change, error) { return fault.OneOf("kind", s, Install, Upgrade) }

// Schema is where the extensions are installed.
const Schema = "public"

var version = regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}$`)

// IsVersion reports whether a text looks like a version of one of these extensions, as "1.6" does.
func IsVersion(s string) bool { return version.MatchString(s) }
