package serve

import (
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

// Route is one row of the table of routes. Routing, the checks before the handler, the OpenAPI document and the isolation
// tests all come from it.
type Route struct {
	// Name, Summary and Tag are for the OpenAPI document: what a generated client calls the route, what it does, in a few words,
	// and the group that it stands in.
	Name, Summary string
	Tag           Tag

	Method string // upper case
	Path   string // with {parameters}; filename is a backup file name, login a managed login, any other one a UUID
	// Class is whose bucket of the key a request is taken out of. A route without a key has buckets by client address, or no class
	// and no limit.
	Class ratelimit.Class
	Key   KeyClass
	// PlanRefusal is the code for an account whose plan has no API access; PLAN_API_ACCESS_REQUIRED where empty.
	PlanRefusal fault.Code

	// Target is what the first path parameter names, nil where there is none; Gate is what the operator has to open for it, and
	// Action the right that the caller needs on it.
	Target *Target
	Action account.Action
	Gate   rollout.Gate

	Body            Body
	Idempotency     Presence // of the header Idempotency-Key; the handler finds it in Request.Key
	Repeatable      bool     // a POST without that header that a client may send again: it does nothing twice, or goes on
	NoStore         bool     // Cache-Control: no-store on every answer, errors included
	BareMaintenance bool     // {error: MAINTENANCE, message} without the envelope (spec, "Errors")

	Query []Parameter
	Work
	// Refusals are the codes of the handler's own errors. Those of the checks before it follow from the row.
	Refusals []fault.Code
}

// Target is a kind of thing that the first parameter of a path names.
type Target struct {
	Name     string     // in one word, for people
	Missing  fault.Code // where it is not within reach
	Previews bool       // a preview is one, and is refused where the gate does not admit it
	Summary  bool       // only what is shown of a database is of interest: the admission reads it
}

// KeyClass determines which keys may use a route.
type KeyClass int

const (
	AnyKey        KeyClass = iota // every key of an account
	FullAccount                   // full-account keys only
	PreviewKey                    // preview CI keys only
	PreviewOrFull                 // preview CI keys, and full-account keys
	Public                        // no key at all
	validKey                      // any key that is valid: for paths without a route
)

// admits returns KEY_SCOPE_DENIED for a key of the wrong kind or scope. It needs no look-up, so existing and missing IDs get
// the same answer.
func (k KeyClass) admits(c access.Caller) error {
	switch {
	case k == validKey:
		return nil
	case k == PreviewOrFull && c.Key.Kind != account.CIKey && c.Key.Scope != account.FullAccount:
		return fault.New(fault.KeyScopeDenied, "this route requires a preview CI key or a full-account key")
	case k == PreviewOrFull:
		return nil
	case k == PreviewKey && c.Key.Kind != account.CIKey:
		return fault.New(fault.KeyScopeDenied, "this route requires a preview CI key")
	case k != PreviewKey && c.Key.Kind == account.CIKey:
		return fault.New(fault.KeyScopeDenied, "a preview CI key can only be used on preview routes")
	case k == FullAccount && c.Key.Scope != account.FullAccount:
		return fault.New(fault.KeyScopeDenied, "this route requires a full-account key")
	}
	return nil
}

// Presence of a header or parameter.
type Presence int

const (
	Absent Presence = iota
	Optional
	Required
)

// Parameter documents one query parameter. One with a longest value, in characters, is required.
type Parameter struct {
	Name, Meaning string
	Enum          []string
	Longest       int
}

// Tag is a group of routes in the OpenAPI document.
type Tag struct {
	Name    string `json:"name"`
	Meaning string `json:"description"`
}
