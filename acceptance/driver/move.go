package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

const whyMoved = "room is needed"

// at is the database server at an address.
func (r *realService) at(address string) *stack.Stack {
	if r.second != nil && address == r.second.PoolerAddress() {
		return r.second
	}
	return r.Stack
}

// startSecond starts the second database server.
func (r *realService) startSecond() error {
	ctx, cancel := soon()
	defer cancel()
	o := stack.Options{
		Dir: filepath.Join(r.dir, "second"), AgentFlags: r.objects.Flags("second"), BlobDir: r.objects.Blobs("second"),
	}
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return err
	}
	var err error
	if r.second, err = r.Beside(ctx, "second", o); err != nil {
		return err
	}
	_, err = r.Admin(ctx, "server", "disable", "--server", r.second.ServerID())
	return errors.Join(err, r.knowPasswords(r.second))
}

// Servers implements spec.Mover.
func (o realOperator) Servers() (first, second id.ServerID, err error) {
	if o.r.second == nil {
		if err := o.r.startSecond(); err != nil {
			return "", "", err
		}
	}
	return id.ServerID(o.r.ServerID()), id.ServerID(o.r.second.ServerID()), nil
}

// EnableServer implements spec.Mover.
func (o realOperator) EnableServer(of id.ServerID, on bool) error {
	word := "disable"
	if on {
		word = "enable"
	}
	_, err := o.admin("server", word, "--server", string(of))
	return err
}

// Move implements spec.Mover.
func (o realOperator) Move(of id.DatabaseID, to id.ServerID, how spec.Moving) error {
	_, err := o.waits("database", "move", "--database", string(of), "--to", string(to), "--closed="+strconv.FormatBool(how.Closed),
		"--forward", how.Forward.String(), "--reason", whyMoved)
	return err
}

// moveTime bounds a move, or a drain of a few databases, on a busy machine.
const moveTime = 5 * time.Minute

// waits has a command wait for the end of what it begins.
func (o realOperator) waits(args ...string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), moveTime)
	defer cancel()
	return o.r.Admin(ctx, append(args, "--wait")...)
}

// Movable implements spec.Mover.
func (o realOperator) Movable(of id.DatabaseID) (texts []string, err error) {
	found, err := o.admin("database", "movable", "--database", string(of))
	if err != nil {
		return nil, err
	}
	list, _ := found["obstacles"].([]any)
	for _, one := range list {
		obstacle, _ := one.(map[string]any)
		texts = append(texts, fmt.Sprint(obstacle["what"], " ", obstacle["object"]))
	}
	if movable := found["movable"]; movable != (len(texts) == 0) {
		err = fmt.Errorf("movable is %v with %d obstacles", movable, len(texts))
	}
	return texts, err
}

// Drain implements spec.Mover.
func (o realOperator) Drain(of id.ServerID) error {
	_, err := o.waits("server", "drain", "--server", string(of), "--closed", "--forward", "0s", "--reason", whyMoved)
	return err
}

// Forwards implements spec.Mover.
func (o realOperator) Forwards(of id.DatabaseID) (on []id.ServerID, err error) {
	ctx, cancel := soon()
	defer cancel()
	list, err := o.r.AdminList(ctx, "forward", "list")
	for _, f := range list {
		if f["databaseId"] == string(of) {
			on = append(on, id.ServerID(fmt.Sprint(f["serverId"])))
		}
	}
	return on, err
}

// EndForwards implements spec.Mover.
func (o realOperator) EndForwards(of id.DatabaseID) error {
	_, err := o.admin("forward", "end", "--database", string(of), "--reason", "everybody has the new address")
	return err
}

// secondHost is that of the second fake server.
const secondHost = "second.test"

// at is the database server at an address.
func (s *service) at(address string) *fakeagent.Server {
	if strings.HasPrefix(address, secondHost+":") {
		return s.fleet.Server(s.second.ID)
	}
	return s.agent
}

// Servers implements spec.Mover.
func (o fakeOperator) Servers() (first, second id.ServerID, err error) {
	if o.s.second.ID == "" {
		if o.s.second, err = o.s.register("second", secondHost); err != nil {
			return "", "", err
		}
		err = o.EnableServer(o.s.second.ID, false)
	}
	return o.s.server, o.s.second.ID, err
}

// EnableServer implements spec.Mover.
func (o fakeOperator) EnableServer(of id.ServerID, on bool) error {
	_, err := o.use().ChangeServer(context.Background(), of, func(s *server.Server) { s.Enabled = on })
	return err
}

// Move implements spec.Mover.
func (o fakeOperator) Move(of id.DatabaseID, to id.ServerID, how spec.Moving) error {
	q := moves.Request{DatabaseID: of, To: to, Closed: how.Closed, Forward: how.Forward}
	return o.awaits(o.use().MoveDatabase(context.Background(), q, someOrder(whyMoved)))
}

// Movable implements spec.Mover.
func (o fakeOperator) Movable(of id.DatabaseID) (texts []string, err error) {
	found, err := o.use().Movable(context.Background(), of)
	for _, obstacle := range found.Obstacles {
		texts = append(texts, moves.ObstacleText(obstacle.Kind)+" "+obstacle.Object)
	}
	return texts, err
}

// Drain implements spec.Mover.
func (o fakeOperator) Drain(of id.ServerID) error {
	d := move.Drain{ServerID: of, AtOnce: move.DefaultAtOnce, Closed: true, By: "somebody", Reason: whyMoved}
	if _, err := o.use().DrainServer(context.Background(), d, false); err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < waitTime; o.s.pass(time.Second) {
		all, err := o.use().Drains(context.Background())
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.ServerID == of && one.State == move.Drained {
				return nil
			}
		}
	}
	return errors.New("the server is not drained")
}

// Forwards implements spec.Mover.
func (o fakeOperator) Forwards(of id.DatabaseID) (on []id.ServerID, err error) {
	all, err := o.use().Forwards(context.Background())
	for _, f := range all {
		if f.DatabaseID == of {
			on = append(on, f.ServerID)
		}
	}
	return on, err
}

// EndForwards implements spec.Mover.
func (o fakeOperator) EndForwards(of id.DatabaseID) error {
	return o.use().EndForwards(context.Background(), of, "", someOrder("everybody has the new address"))
}
