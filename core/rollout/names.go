package rollout

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// All is every limited-rollout route.
const All = "all"

// Features are what is on or off for the whole installation.
func Features() []string {
	return names(func(r Rule) string { return r.Feature })
}

// Routes are the limited-rollout routes that a database is enrolled for, one by one.
func Routes() []string {
	return names(func(r Rule) string {
		if r.Activated {
			return ""
		}
		return r.Enrolment
	})
}

// names are the different names that the rules have, in their order.
func names(of func(Rule) string) (list []string) {
	for _, r := range Rules {
		if name := of(r); name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// CheckFeature returns VALIDATION_ERROR for what is no feature. Of a route it says that it is one, and by which command a
// database is enrolled for it.
func CheckFeature(name string) error {
	switch {
	case slices.Contains(Features(), name):
		return nil
	case slices.Contains(Routes(), name):
		return fault.Invalid("feature", "%s is a route, for which databases are enrolled one by one: pgherd admin enroll --database "+
			"ID --route %[1]s; it also needs the feature %s", name, strings.Join(featuresOf(name), " or "))
	}
	return fault.Invalid("feature", "must be one of %s", strings.Join(Features(), ", "))
}

// featuresOf are those of which a route needs one.
func featuresOf(route string) []string {
	return names(func(r Rule) string {
		if r.Enrolment == route {
			return r.Feature
		}
		return ""
	})
}

// ParseRoute returns the route of that name, or every one for All. VALIDATION_ERROR, which says by which command a feature is
// enabled, or a database activated.
func ParseRoute(name string) ([]string, error) {
	routes := Routes()
	switch {
	case name == All:
		return routes, nil
	case slices.Contains(routes, name):
		return []string{name}, nil
	case name == LegacyEnrolment:
		return nil, fault.Invalid("route", "%s is no route, but an activation of one database: pgherd admin legacy-roles activate "+
			"--database ID", name)
	case slices.Contains(Features(), name):
		return nil, fault.Invalid("route", "%s is a feature, which is on or off for the whole installation: pgherd admin feature "+
			"enable %[1]s", name)
	}
	return nil, fault.Invalid("route", "must be one of %s or %s", strings.Join(routes, ", "), All)
}
