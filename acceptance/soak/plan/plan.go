// Package plan makes the plan of a soak from a seed: who does what, and what goes wrong meanwhile. It is pure: the same seed
// makes the same plan, and a plan can be written down, read again and made smaller.
package plan

// Way is how somebody does something.
type Way string

// The ways.
const (
	API       Way = "api"       // an HTTP client with the account's key
	Dashboard Way = "dashboard" // a session of the account's owner
	Svc       Way = "svc"       // the command line client
	Operator  Way = "operator"  // pgherd admin
	SQL       Way = "sql"       // a client of the database
)

// Plan is what a seed makes.
type Plan struct {
	Seed     uint64 `json:"seed"`
	Accounts int    `json:"accounts"`
	Steps    []Step `json:"steps"`
}

// Step is one line of a plan: an action or a disturbance. Its number stays when the plan is made smaller, and names what it
// makes: so all that is left means the same.
type Step struct {
	Number      int          `json:"number"` // from 1
	Round       int          `json:"round"`  // from 0; after each round all is quiet
	Action      *Action      `json:"action,omitempty"`
	Disturbance *Disturbance `json:"disturbance,omitempty"`
}

// Action is something that somebody wants of the service.
type Action struct {
	Do      Do     `json:"do"`
	Way     Way    `json:"way"`
	Account int    `json:"account"`
	Host    int    `json:"host"`            // which of the hosts of a kind it asks
	On      int    `json:"on,omitempty"`    // the step that made what it is done to; 0: none
	In      int    `json:"in,omitempty"`    // the step that made the database that this belongs to; 0: none
	Choice  uint64 `json:"choice"`          // whatever else it chooses
	Waits   bool   `json:"waits,omitempty"` // until what it began has ended
}

// Do is what an action does, as one says it.
type Do string

// Rounds is how many rounds the plan has.
func (p Plan) Rounds() (n int) {
	for _, s := range p.Steps {
		n = max(n, s.Round+1)
	}
	return n
}

// Round are the steps of one round, in their order.
func (p Plan) Round(n int) (steps []Step) {
	for _, s := range p.Steps {
		if s.Round == n {
			steps = append(steps, s)
		}
	}
	return steps
}

// With is the plan with other steps.
func (p Plan) With(steps []Step) Plan {
	p.Steps = steps
	return p
}
