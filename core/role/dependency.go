package role

import "github.com/pgherd/pgherd/core/fault"

// DependencyKind says how something depends on a role.
type DependencyKind string

// The kinds of dependencies.
const (
	GrantDependency  DependencyKind = "grant"          // a privilege that the owner gave the role
	OwnedDependency  DependencyKind = "owned_object"   // the role made it
	PolicyDependency DependencyKind = "policy"         // a row security policy names the role
	OtherDependency  DependencyKind = "other"          //
	OtherDatabase    DependencyKind = "other_database" // in another database of the account
)

// Values lists the kinds.
func (DependencyKind) Values() []DependencyKind {
	return []DependencyKind{GrantDependency, OwnedDependency, PolicyDependency, OtherDependency, OtherDatabase}
}

// MaxDependencies is how many an answer lists (spec, "Limits").
const MaxDependencies = 20

// Dependency is something that prevents the removal of a role (spec, "Role dependency").
type Dependency struct {
	Kind       DependencyKind `json:"kind"`
	ObjectType string         `json:"objectType"`
	Schema     string         `json:"schema"`
	Name       string         `json:"name"`
	Identity   string         `json:"identity"`
	// Grantor is the role that made the grant; the object's owner, or one that the owner let pass the privilege on. Empty for what
	// is no grant.
	Grantor string `json:"grantor,omitempty" required:"false"`
}

// Dependencies are the first MaxDependencies of a role; Truncated is true if there are more.
type Dependencies struct {
	List      []Dependency `json:"list"`
	Truncated bool         `json:"truncated"`
}

// Any reports whether something depends on the role.
func (d Dependencies) Any() bool { return len(d.List) > 0 || d.Truncated }

// Refusal is ROLE_DEPENDENCIES, with at most MaxDependencies of the list where listed is true. The role is revoked and stays.
func (d Dependencies) Refusal(listed bool) error {
	err := fault.New(fault.RoleDependencies,
		"objects, grants or policies depend on the role; it is revoked and stays until the owner has removed them")
	if listed {
		first := d.List[:min(len(d.List), MaxDependencies)]
		err.Extra = map[string]any{
			"dependencies": append([]Dependency{}, first...), // an empty list, never null
			"truncated":    d.Truncated || len(d.List) > MaxDependencies,
		}
	}
	return err
}
