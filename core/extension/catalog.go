package extension

import "github.com/pgherd/pgherd/core/idempotency"

// supported are the versions that are installed and upgraded to (spec, "Extension catalog entry"), by the first major version of
// PostgreSQL that has them.
var supported = map[Name]map[int]string{
	Citext: {16: "1.6", 18: "1.8"}, PgTrgm: {16: "1.6"}, PgCrypto: {16: "1.3", 18: "1.4"},
}

// Values lists the names for the API's description.
func (Name) Values() []Name { return Names }

// Version is the supported version on servers of a major version of PostgreSQL; empty for what is not in the catalog.
func (n Name) Version(postgres int) (version string) {
	since := 0
	for first, has := range supported[n] {
		if first <= postgres && first > since {
			since, version = first, has
		}
	}
	return version
}

// Values lists the changes for the API's description.
func (Change) Values() []Change { return []Change{Install, Upgrade} }

// Request is what a user asks for.
type Request struct {
	Extension Name
	Change    Change
	Key       idempotency.Key
}

// Check refuses what is none of the catalog. VALIDATION_ERROR names the field.
func (r Request) Check() error {
	if _, err := ParseName(string(r.Extension)); err != nil {
		return err
	}
	_, err := ParseChange(string(r.Change))
	return err
}

// Fingerprint identifies what the request asks for.
func (r Request) Fingerprint() idempotency.Fingerprint {
	return idempotency.NewFingerprint(string(r.Extension), string(r.Change))
}

// Input is the input of an operation on an extension.
type Input struct {
	Extension Name   `json:"extension"`
	Change    Change `json:"change"`
	Version   string `json:"version"` // that is to be installed
	// IdempotencyKey stands for the key of the request in the operation's answers, which never show the key itself.
	IdempotencyKey idempotency.Fingerprint `json:"idempotencyKey"`
}

// Result is the result of one that has succeeded.
type Result struct {
	Extension        Name   `json:"extension"`
	InstalledVersion string `json:"installedVersion"`
	Schema           string `json:"schema"`
}

// Entry is an extension of the catalog, as a database and its server have it.
type Entry struct {
	Name      Name
	Available bool // the server has it
	Trusted   bool // a login that may create objects in the database may install it
	// RestoreQualified means that a backup with the default version was proven to be restorable on this server.
	RestoreQualified bool
	DefaultVersion   string // of the server; empty where it is not available
	InstalledVersion string // empty where it is not installed
	Schema           string // in which it is installed
}
