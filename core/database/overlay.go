package database

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/machine"
)

// Overlay is what the additional roles of a database with a single login stand on: two group roles, which hold what the access
// profiles grant (spec, "Existing-database role overlay"). A database has one from the opt-in on, and keeps it; where its server
// has lost it, the owner makes another.
type Overlay struct {
	// OverlayID identifies the opt-in, also to the agent; empty before.
	OverlayID     id.OperationID `db:"overlay_id"`
	OverlayStatus OverlayStatus  `db:"overlay_status"`
	// OverlayGeneration is the role-set generation of the opt-in.
	OverlayGeneration int64 `db:"overlay_generation"`
}

// OverlayStatus is the status of an overlay.
type OverlayStatus string

// The statuses.
const (
	NoOverlay       OverlayStatus = "none"     // the database has not opted in
	OverlayReserved OverlayStatus = "reserved" // recorded; how much of it exists on the server is not known
	OverlayActive   OverlayStatus = "active"   // the group roles and their rights are proven to exist
)

// OverlayStatuses lists every status in the order of the docs.
var OverlayStatuses = []OverlayStatus{NoOverlay, OverlayReserved, OverlayActive}

// Values lists what the API shows.
func (OverlayStatus) Values() []OverlayStatus { return []OverlayStatus{OverlayReserved, OverlayActive} }

// OverlayEvent is what happens to an overlay.
type OverlayEvent string

// The events.
const (
	OptIn OverlayEvent = "opt_in" // the owner asks for it
	Stood OverlayEvent = "stood"  // the agent has proven that it exists
	Lost  OverlayEvent = "lost"   // the owner asks for it again, and the agent has seen that it no longer exists
)

// OverlayEvents lists every event in the order of the docs.
var OverlayEvents = []OverlayEvent{OptIn, Stood, Lost}

// MakeOverlay is the effect of an opt-in that the server has yet to carry out.
const MakeOverlay = "make group roles"

var (
	overlayTo   = machine.To[OverlayStatus]
	overlayNone = machine.Refuse[OverlayStatus](fault.LegacyRoleConflict)
)

// OverlayTransitions is the machine.
var OverlayTransitions = machine.Table[OverlayStatus, OverlayEvent]{
	NoOverlay: {OptIn: overlayTo(OverlayReserved, MakeOverlay), Stood: overlayNone, Lost: overlayNone},
	OverlayReserved: {
		OptIn: overlayTo(OverlayReserved, MakeOverlay), Stood: overlayTo(OverlayActive), Lost: overlayTo(OverlayReserved, MakeOverlay),
	},
	OverlayActive: {OptIn: overlayTo(OverlayActive), Stood: overlayTo(OverlayActive), Lost: overlayTo(OverlayReserved, MakeOverlay)},
}

// Decide applies an event; a refusal is LEGACY_ROLE_CONFLICT.
func (s OverlayStatus) Decide(e OverlayEvent) (machine.Cell[OverlayStatus], error) {
	return OverlayTransitions.Decide(s, e)
}

// HasGroups reports whether the database is known to have group roles.
func (r Record) HasGroups() bool { return r.RoleModel == Managed || r.OverlayStatus == OverlayActive }
