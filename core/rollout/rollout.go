// Package rollout says which capabilities an operator opens: for the whole installation by a feature, and for one database by an
// enrolment.
package rollout

import (
	"slices"

	"github.com/pgherd/pgherd/core/fault"
)

// Gate must be open for a request to reach a database for a capability.
type Gate string

// The gates.
const (
	AdditionalRoles  Gate = "additional-roles"
	ExtensionCatalog Gate = "extension-catalog"
	Restore          Gate = "restore"
	RestoreUpload    Gate = "restore-upload"
	Clone            Gate = "clone"
	Delete           Gate = "delete"
	DeletedDatabases Gate = "deleted-databases" // their list and their deletion backups
	Recover          Gate = "recover"
	RecoverPreview   Gate = "recover-preview"
	LegacyRoles      Gate = "legacy-roles"
)

// Rule says what opens a gate.
type Rule struct {
	Gate      Gate
	Feature   string // that is on in the installation
	Enrolment string // that the database has; none where empty
	// Activated is an enrolment that has a command of its own: it comes neither with "all" nor by itself with a new database.
	Activated bool
	// Previews means that preview databases pass it, too. What lives and ends by a lease is neither cloned nor brought back by the
	// routes of databases that stay, so a new gate is closed to them unless its row says so.
	Previews bool
	// Temporary means that a closed gate is FEATURE_DISABLED, for a later attempt; otherwise it is FEATURE_NOT_AVAILABLE.
	Temporary bool
}

// Rules is the one table of gates. Lists name features and routes in its order.
var Rules = []Rule{
	{Gate: AdditionalRoles, Feature: "additional-roles", Temporary: true, Previews: true},
	{Gate: ExtensionCatalog, Feature: "extension-catalog", Previews: true},
	{Gate: Restore, Feature: "restore", Enrolment: "restore"},
	{Gate: RestoreUpload, Feature: "restore", Enrolment: "restore-upload"},
	{Gate: Clone, Feature: "clone", Enrolment: "clone"},
	{Gate: Delete, Feature: "delete", Enrolment: "delete"},
	{Gate: DeletedDatabases, Feature: "deleted-recovery", Previews: true},
	{Gate: Recover, Feature: "deleted-recovery", Enrolment: "recover"},
	{Gate: RecoverPreview, Feature: "preview-recovery", Enrolment: "recover", Previews: true},
	{Gate: LegacyRoles, Feature: "legacy-roles", Enrolment: LegacyEnrolment, Activated: true, Previews: true},
}

// LegacyEnrolment is the activation of a database for additional roles.
const LegacyEnrolment = "legacy-roles"

// Grants are what an operator has opened.
type Grants struct {
	Features   []string // that are on
	Enrolments []string // of one database
}

// Check returns the refusal of a gate that the grants leave closed. A gate that is not in the table is closed.
func (g Gate) Check(granted Grants) error {
	r, known := g.rule()
	if known && slices.Contains(granted.Features, r.Feature) &&
		(r.Enrolment == "" || slices.Contains(granted.Enrolments, r.Enrolment)) {
		return nil
	}
	if code := g.Refusal(); code != fault.FeatureDisabled {
		return fault.New(code, "%s is not available", g)
	}
	return fault.New(fault.FeatureDisabled, "%s is switched off for now; retry later", g)
}

// AdmitsPreview returns PREVIEW_CONFLICT where the gate is not for previews.
func (g Gate) AdmitsPreview() error {
	if r, _ := g.rule(); r.Previews {
		return nil
	}
	return ErrPreview()
}

// ErrPreview refuses for a preview what is only for databases that stay.
func ErrPreview() error {
	return fault.New(fault.PreviewConflict, "the database is a preview, which lives and ends by its lease")
}

// Refusal is the code of a closed gate.
func (g Gate) Refusal() fault.Code {
	if r, _ := g.rule(); r.Temporary {
		return fault.FeatureDisabled
	}
	return fault.FeatureNotAvailable
}

// Known reports whether the gate is in the table.
func (g Gate) Known() bool {
	_, known := g.rule()
	return known
}

func (g Gate) rule() (Rule, bool) {
	i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Gate == g })
	if i < 0 {
		return Rule{}, false
	}
	return Rules[i], true
}
