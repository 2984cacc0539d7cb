// Package extension holds the catalog of PostgreSQL extensions that the service installs and upgrades, what makes one of them fit
// for that on a server, and the decision about a request (spec, section "Extensions").
package extension

import (
	"slices"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
)

// Name is the name of an extension in the catalog.
type Name string

// The extensions.
const (
	Citext   Name = "citext"
	PgTrgm   Name = "pg_trgm"
	Pgcrypto Name = "pgcrypto"
)

// Schema is where extensions are installed.
const Schema = "public"

// Supported is an extension of the catalog, and the version that is installed and upgraded to.
type Supported struct {
	Name    Name
	Version string
}

// Catalog lists every extension, in the order in which the API shows them.
var Catalog = []Supported{{Citext, "1.6"}, {PgTrgm, "1.6"}, {Pgcrypto, "1.3"}}

// Names lists the extensions of the catalog.
func Names() []Name {
	names := make([]Name, len(Catalog))
	for i, s := range Catalog {
		names[i] = s.Name
	}
	return names
}

// Values lists them for the API's description.
func (Name) Values() []Name { return Names() }

// Version is the supported version; empty for what is not in the catalog.
func (n Name) Version() string {
	if i := slices.IndexFunc(Catalog, func(s Supported) bool { return s.Name == n }); i >= 0 {
		return Catalog[i].Version
	}
	return ""
}

// Kind is what a request asks for.
type Kind string

// The kinds of requests.
const (
	Install Kind = "install"
	Upgrade Kind = "upgrade" // to the supported version
)

// Kinds lists every kind.
var Kinds = []Kind{Install, Upgrade}

// Values lists them for the API's description.
func (Kind) Values() []Kind { return Kinds }

// Request is what a user asks for.
type Request struct {
	Extension Name
	Kind      Kind
	Key       idempotency.Key
}

// Check refuses what is none of the catalog. VALIDATION_ERROR names the field.
func (r Request) Check() error {
	if _, err := fault.OneOf("extension", string(r.Extension), Names()...); err != nil {
		return err
	}
	_, err := fault.OneOf("kind", string(r.Kind), Kinds...)
	return err
}

// Fingerprint identifies what the request asks for.
func (r Request) Fingerprint() idempotency.Fingerprint {
	return idempotency.NewFingerprint(string(r.Extension), string(r.Kind))
}

// Entry is an extension of the catalog, as a database and its server have it.
type Entry struct {
	Name      Name
	Available bool // the server has it
	Trusted   bool // who may create objects in the database may install it
	// RestoreQualified means that a backup with the default version was proven to be restorable on this server.
	RestoreQualified bool
	DefaultVersion   string // of the server; empty where it is not available
	InstalledVersion string // empty where it is not installed
	Schema           string // in which it is installed
}
