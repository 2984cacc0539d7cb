package command

import (
	"encoding/json"
	"slices"

	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// ChangeExtension installs an extension in the schema public, or upgrades it there, with the rights of the database's owner. It
// starts the work, takes it up after a crash, or reports on it, and returns at once. Nothing is ever done twice: what became of
// the database is asked about an attempt whose end was not seen.
type ChangeExtension struct {
	Returns[ExtensionReport] `json:"-"`
	DatabaseID               id.DatabaseID    `json:"databaseId"`
	Extension                extension.Name   `json:"extension"`
	Change                   extension.Change `json:"change"`
	Version                  string           `json:"version"` // that it is to have; it must be the server's default
}

// About implements Command.
func (c ChangeExtension) About() About { return ofDatabase("extension.change", c.DatabaseID, 1) }

// Check implements Command.
func (c ChangeExtension) Check() error {
	if err := checkDatabase(c.DatabaseID); err != nil {
		return err
	}
	if _, err := extension.ParseChange(string(c.Change)); err != nil {
		return Refuse(ReasonInvalid, "change is none of the protocol")
	}
	return checkExtension(c.Extension, c.Version)
}

// QualifyExtension proves on this server that databases with an extension can be restored: it installs the extension in a
// database of its own, uses it, makes a backup, restores that elsewhere and compares. It is about no customer's database, and
// leaves nothing. It starts the work or reports on it, and returns at once.
type QualifyExtension struct {
	Returns[ExtensionProof] `json:"-"`
	Extension               extension.Name `json:"extension"`
	Version                 string         `json:"version"`
}

// About implements Command.
func (c QualifyExtension) About() About {
	return About{Kind: "extension.qualify", Resource: "extension/" + string(c.Extension), Generation: 1}
}

// Check implements Command.
func (c QualifyExtension) Check() error { return checkExtension(c.Extension, c.Version) }

func checkExtension(name extension.Name, version string) error {
	if _, err := extension.ParseName(string(name)); err != nil {
		return Refuse(ReasonInvalid, "extension is none of the protocol")
	}
	if !extension.IsVersion(version) {
		return Refuse(ReasonInvalid, "version must have the form 1.6")
	}
	return nil
}

// ExtensionState says whether work on an extension runs or has ended.
type ExtensionState string

// The states.
const (
	ExtensionRunning ExtensionState = "running"
	ExtensionDone    ExtensionState = "done"
	ExtensionFailed  ExtensionState = "failed"
)

// UnmarshalText refuses an unknown state: it does not say what became of the work.
func (s *ExtensionState) UnmarshalText(text []byte) (err error) {
	*s, err = oneOf(text, ExtensionRunning, ExtensionDone, ExtensionFailed)
	return err
}

// ExtensionReport is the progress or the result of a ChangeExtension.
type ExtensionReport struct {
	State   ExtensionState `json:"state"`
	Stage   string         `json:"stage"`
	Reason  Reason         `json:"reason,omitempty"`  // of ExtensionFailed
	Message string         `json:"message,omitempty"` // of ExtensionFailed; fit for the customer
	// Changed says that the database was changed. Where it is false and the work is over, nothing was.
	Changed          bool   `json:"changed"`
	InstalledVersion string `json:"installedVersion,omitempty"` // of ExtensionDone
	Schema           string `json:"schema,omitempty"`           // of ExtensionDone
}

// UnmarshalJSON takes a reason that this version does not know for ReasonFailed.
func (r *ExtensionReport) UnmarshalJSON(text []byte) error {
	type fields ExtensionReport
	if err := json.Unmarshal(text, (*fields)(r)); err != nil {
		return err
	}
	if r.State == ExtensionFailed && !slices.Contains(Reasons, r.Reason) {
		r.Reason = ReasonFailed
	}
	return nil
}

// ExtensionProof is the progress or the result of a QualifyExtension.
type ExtensionProof struct {
	State ExtensionState `json:"state"` // ExtensionFailed: nothing was found out
	Stage string         `json:"stage"`
	// Qualified says that what was restored was equal and worked. It is false until ExtensionDone.
	Qualified     bool   `json:"qualified"`
	Message       string `json:"message,omitempty"` // why it is not qualified, or nothing was found out
	Version       string `json:"version,omitempty"` // that was tried
	ServerVersion string `json:"serverVersion,omitempty"`
}
