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

// CheckFeature returns VALIDATION_ERROR for what is no feature.
func CheckFeature(name string) error {
	if slices.Contains(Features(), name) {
		return nil
	}
	return fault.Invalid("feature", "must be one of %s", strings.Join(Features(), ", "))
}

// ParseRoute returns the route of that name, or every one for All. VALIDATION_ERROR.
func ParseRoute(name string) ([]string, error) {
	routes := Routes()
	switch {
	case name == All:
		return routes, nil
	case slices.Contains(routes, name):
		return []string{name}, nil
	}
	return nil, fault.Invalid("route", "must be one of %s or %s", strings.Join(routes, ", "), All)
}
