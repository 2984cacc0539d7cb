package database

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

var overlayMoves = map[OverlayStatus]map[OverlayEvent]OverlayStatus{
	NoOverlay:       {OptIn: OverlayReserved},
	OverlayReserved: {OptIn: OverlayReserved, Stood: OverlayActive, Lost: OverlayReserved},
	OverlayActive:   {OptIn: OverlayActive, Stood: OverlayActive, Lost: OverlayReserved},
}

func TestOverlayMachine(t *testing.T) {
	machinetest.Complete(t, OverlayTransitions, OverlayStatuses, OverlayEvents)
	machinetest.Moves(t, OverlayTransitions, OverlayStatuses, OverlayEvents, overlayMoves, fault.LegacyRoleConflict)
	for _, s := range OverlayStatuses {
		cell, err := s.Decide(OptIn)
		if err != nil || len(cell.Effects) > 0 != (s != OverlayActive) {
			t.Errorf("opt-in of one that is %s has the effects %v, %v", s, cell.Effects, err)
		}
	}
}

func TestGroupRolesOfADatabase(t *testing.T) {
	for _, s := range OverlayStatuses {
		single, managed := Record{RoleModel: SingleLogin}, Record{RoleModel: Managed}
		single.OverlayStatus, managed.OverlayStatus = s, s
		if !managed.HasGroups() || single.HasGroups() != (s == OverlayActive) {
			t.Errorf("overlay %s: %v, managed: %v", s, single.HasGroups(), managed.HasGroups())
		}
	}
}
