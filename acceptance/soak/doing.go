//go:build linux

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// doing is an action while it is done.
type doing struct {
	*run
	plan.Action
	step  int
	by    *customer
	on    *thing // what it is done to
	in    *thing // the database that this belongs to, or that it is
	name  string // of what it makes, which nothing else has
	begun time.Time
}

// answer is what an answer tells, whichever way it came: the fields of its JSON.
type answer map[string]any

// text is a field, of which the path may name those around it.
func (a answer) text(path ...string) string {
	var at any = map[string]any(a)
	for _, name := range path {
		fields, _ := at.(map[string]any)
		at = fields[name]
	}
	text, _ := at.(string)
	return text
}

// deed is how a capability is used, and what that promises.
type deed struct {
	api      func(context.Context, *doing) (any, error)
	svc      func(*doing) []string                         // the arguments of svc
	operator func(*doing) [][]string                       // those of one or several of the operators' commands
	pages    func(context.Context, *doing) (answer, error) // in a session at a dashboard
	sql      func(context.Context, *doing) error           // over a connection to a database
	wants    func(*doing) []wish                           // what it asks for
	took     func(context.Context, *doing, answer)         // when it was answered
	lost     func(*doing)                                  // when its answer was lost
}

// wish is a fact that an action wants to be so.
type wish struct {
	fact  model.Fact
	value string
	later bool // what was answered may still fail: it is the work of an operation
}

// act does an action, and takes what came of it.
func (r *run) act(ctx context.Context, s plan.Step) {
	d := &doing{run: r, Action: *s.Action, step: s.Number, by: r.accounts[s.Action.Account], begun: time.Now()}
	d.name = fmt.Sprintf("soak-%d", s.Number)
	if d.On != 0 {
		if d.on = r.of(d.On); d.on == nil {
			return // its step has made nothing, or was taken out of the plan
		}
		if d.in = d.on.in; d.in == nil {
			d.in = d.on
		}
	}
	does := deeds[d.Do]
	if c := plan.Of(d.Do); c.Makes != plan.Nothing && d.makes(c) {
		r.add(d.made(c))
	}
	got, err := d.ask(ctx, does)
	outcome := d.outcome(err)
	r.count(d, outcome)
	if errors.Is(err, errUnknown) {
		return // nothing was asked
	}
	if does.wants != nil {
		for _, w := range does.wants(d) {
			of := outcome
			if w.later && of == model.Done {
				of = model.Unknown
			}
			r.facts.Note(w.fact, w.value, d.step, of)
		}
	}
	switch {
	case outcome == model.Done && does.took != nil:
		does.took(ctx, d, got)
	case outcome == model.Unknown && does.lost != nil:
		does.lost(d)
	}
}

// makes reports whether what the action makes can be known: what belongs to a database that is unknown cannot.
func (d *doing) makes(c plan.Capability) bool { return len(c.On) == 0 || d.on.known() != "" }

// made is what the action makes, of which nothing is known yet.
func (d *doing) made(c plan.Capability) *thing {
	t := &thing{step: d.step, kind: c.Makes, account: d.by, name: d.name, begun: d.begun, rows: &model.Table{}}
	if c.Makes != plan.Database && c.Makes != plan.Single && c.Makes != plan.Preview {
		t.in, t.rows = d.on, nil
	}
	return t
}

// self is what the action makes.
func (d *doing) self() *thing { return d.of(d.step) }

// errUnknown is why nothing is asked: nobody knows the ID of what it would be asked for.
var errUnknown = errors.New("nothing is known of it yet")

// ask asks the service in the action's way. Each request is bounded in time.
func (d *doing) ask(ctx context.Context, does deed) (answer, error) {
	if d.on != nil && d.on.known() == "" || d.in != nil && d.in.known() == "" {
		return nil, errUnknown
	}
	limit, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	switch d.Way {
	case plan.API:
		got, err := does.api(limit, d)
		return fields(got), err
	case plan.Svc:
		return d.runSvc(ctx, does.svc(d)...)
	case plan.Operator:
		var last answer
		for _, args := range does.operator(d) {
			var err error
			if last, err = d.admin(ctx, args...); err != nil {
				return nil, err
			}
		}
		return last, nil
	case plan.Dashboard:
		return does.pages(limit, d)
	case plan.SQL:
		return nil, does.sql(limit, d)
	}
	return nil, fmt.Errorf("nobody does anything by %q", d.Way)
}

// fields are those of an answer's JSON.
func fields(of any) answer {
	text, err := json.Marshal(of)
	a := answer{}
	if err == nil {
		_ = json.Unmarshal(text, &a) // a list has none
	}
	return a
}

// outcome says what is known of a request that ended so.
func (d *doing) outcome(err error) model.Outcome {
	var ended *commandError
	var answered *formError
	switch {
	case err == nil:
		return model.Done
	case errors.Is(err, errUnknown), refused(err), errors.As(err, &answered) && answered.refused():
		return model.Refused
	case errors.As(err, &ended):
		return ended.outcome()
	}
	return model.Unknown
}

// commandError is how a command has ended.
type commandError struct {
	program string
	args    []string
	status  int
	said    string
}

func (e *commandError) Error() string {
	return fmt.Sprintf("%s %s: exit status %d: %s", e.program, strings.Join(e.args, " "), e.status, e.said)
}

var refusalCode = regexp.MustCompile(`\b[A-Z][A-Z0-9]+(_[A-Z0-9]+)+\b`)

// outcome says what is known where svc has ended so. Of the operators' commands nothing is: they lose their connections, too.
func (e *commandError) outcome() model.Outcome {
	code := fault.Code(refusalCode.FindString(e.said))
	if e.program == svcName && e.status == 1 && code.Known() && code.Status() < 500 {
		return model.Refused
	}
	return model.Unknown
}

var wrongUsage = regexp.MustCompile(`unknown (shorthand )?flag|unknown command|is no command|required flag|must be given`)

// misused reports whether the command was called as it cannot be.
func (e *commandError) misused() bool {
	return e.program == svcName && e.status == 2 || wrongUsage.MatchString(e.said)
}

const (
	svcName   = "svc"
	adminName = "pgherd admin"
)

// runSvc runs svc with the account's key, or the preview CI key.
func (d *doing) runSvc(ctx context.Context, args ...string) (answer, error) {
	return d.runSvcWith(ctx, "", args...)
}

// runSvcWith has it read something.
func (d *doing) runSvcWith(ctx context.Context, in string, args ...string) (answer, error) {
	key := d.by.Key
	if args[0] == "previews" {
		key = d.by.ci
	}
	env := []string{
		"HOME=" + d.dir, "PATH=" + filepath.Dir(d.first.PsqlPath()) + ":" + os.Getenv("PATH"),
		"SVC_BASE_URL=" + d.apis[d.Host].URL, "SVC_API_KEY=" + key,
	}
	return d.command(ctx, svcName, d.programs.Svc, in, env, append(args, "--json", "--insecure-http")) // nothing leaves the machine
}

// admin runs one of the operators' commands.
func (r *run) admin(ctx context.Context, args ...string) (answer, error) {
	args = append([]string{"admin", "--json"}, args...)
	return r.command(ctx, adminName, r.programs.Pgherd, "", r.first.OperatorEnvironment(), args)
}

// commandTime bounds a command. Those that wait do so for work that goes on beside kills.
const commandTime = 3 * time.Minute

// command runs a program. Whether its answer is used or not, it is called as it can be.
func (r *run) command(ctx context.Context, name, program, in string, env, args []string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var said, failed bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, strings.NewReader(in), &said, &failed
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		ended := &commandError{name, args, exit.ExitCode(), strings.TrimSpace(failed.String())}
		if ended.misused() {
			r.broke("a command that the soak does not know how to use", "%v", ended)
		}
		return nil, ended
	}
	got := answer{}
	if err == nil && said.Len() > 0 {
		_ = json.Unmarshal(said.Bytes(), &got) // a list has no fields
	}
	return got, err
}

// count counts what was done, and what came of it.
func (r *run) count(d *doing, o model.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[fmt.Sprintf("%s by %s: %s", d.Do, d.Way, o)]++
}

// api is a client of the account's owner.
func (d *doing) api() *apiclient.Client { return d.client(d.by, d.Host) }

// ci is a client with the account's preview CI key.
func (d *doing) ci() *apiclient.Client { return d.clientWith(d.by.ci, d.Host) }

// key is the action's own Idempotency-Key, so that whoever repeats it is told the same.
func (d *doing) key() apiclient.Option { return apiclient.IdempotencyKey(d.name) }

// among takes one of several by the action's choice.
func among[T any](d *doing, list ...T) T { return list[d.Choice%uint64(len(list))] }

// begun is an operation that an action began.
type begun struct {
	id   id.OperationID
	by   *customer
	step int
	at   time.Time
	// ends is called once with how it ended, and by when that was known.
	ends func(o operation.Status, result answer, known time.Time)
}

// begins follows an operation to its end: at once, where the action waits, or when all is quiet.
func (d *doing) begins(ctx context.Context, operationID string, ends func(operation.Status, answer, time.Time)) {
	b := &begun{id: id.OperationID(operationID), by: d.by, step: d.step, at: d.begun, ends: ends}
	d.mu.Lock()
	d.operations = append(d.operations, b)
	d.mu.Unlock()
	if !d.Waits || operationID == "" {
		return
	}
	limit, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	_, _ = d.ended(limit, b) // what has not ended by then does while all is quiet
}

// ended asks until an operation has ended, and takes that.
func (r *run) ended(ctx context.Context, b *begun) (operation.Status, error) {
	for host := 0; ; host = 1 - host {
		limit, cancel := context.WithTimeout(ctx, asked)
		o, err := r.client(b.by, host).Operations.Get(limit, b.id)
		cancel()
		if err == nil && o.Status.Final() {
			result := answer{}
			if o.Result != nil {
				_ = json.Unmarshal(*o.Result, &result)
			}
			r.mu.Lock()
			ends := b.ends
			b.ends = nil
			r.mu.Unlock()
			if ends != nil {
				ends(o.Status, result, time.Now())
			}
			return o.Status, nil
		}
		if ctx.Err() != nil {
			return o.Status, errors.Join(ctx.Err(), err)
		}
		wait(ctx, time.Second)
	}
}
