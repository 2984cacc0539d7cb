//go:build linux

package soak

import (
	"maps"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
)

// deeds are how each capability of the catalog is used. Each area has its own.
var deeds = map[plan.Do]deed{}

func init() {
	for _, area := range []map[plan.Do]deed{
		databaseDeeds, dataDeeds, backupDeeds, roleDeeds, previewDeeds, pipelineDeeds, peopleDeeds, operatorDeeds, looks,
	} {
		maps.Copy(deeds, area)
	}
	for do, f := range forms {
		d := deeds[do]
		d.pages = submits(f)
		deeds[do] = d
	}
}

// by reports whether a deed is done in a way.
func (d deed) by(way plan.Way) bool {
	switch way {
	case plan.API:
		return d.api != nil
	case plan.Svc:
		return d.svc != nil
	case plan.Operator:
		return d.operator != nil
	case plan.Dashboard:
		return d.pages != nil
	case plan.SQL:
		return d.sql != nil
	}
	return false
}
