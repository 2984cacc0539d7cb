package batch

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/core/retention"
)

// kept describes the flags that say how long what is over stays.
var kept = map[retention.Kind]string{
	retention.Operations: "ended operations",
	retention.Audit:      "entries of the activity log",
	retention.Keys:       "idempotency keys, since their first use",
	retention.Changes:    "ended changes of logins",
	retention.Usage:      "samples of what databases used, and the bills of their months",
	retention.Deliveries: "settled webhook deliveries, with their attempts and events",
}

// keepFlags adds a flag for each kind, such as --keep-operations 400d.
func keepFlags(f *pflag.FlagSet, p *retention.Policy) {
	*p = make(retention.Policy)
	for _, k := range retention.Kinds() {
		(*p)[k] = k.Bounds().Default
		f.Var(keepFlag{*p, k}, "keep-"+string(k), fmt.Sprintf("how long %s stay, at least %s; the same for all batch hosts",
			kept[k], retention.Format(k.Bounds().Least)))
	}
}

// checkKept names the flag of a kind that would not stay for long enough.
func checkKept(p retention.Policy) error {
	err := p.Check()
	var wrong *retention.Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("--keep-%s: %s", wrong.Kind, wrong.Text)
	}
	return err
}

// keepFlag is the flag of one kind.
type keepFlag struct {
	policy retention.Policy
	kind   retention.Kind
}

func (f keepFlag) String() string {
	if f.policy == nil { // as pflag asks for the zero value
		return retention.Format(time.Duration(0))
	}
	return retention.Format(f.policy[f.kind])
}

func (f keepFlag) Set(text string) error {
	d, err := retention.Parse(text)
	if err == nil {
		f.policy[f.kind] = d
	}
	return err
}

func (keepFlag) Type() string { return "time" }
