package stack

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// DevOptions say what development host to run.
type DevOptions struct {
	// Dir holds everything that it writes. PostgreSQL's system user passes through it.
	Dir string
	// Binary is the program, as Build made it.
	Binary string
	// Flags are more flags of "pgherd dev".
	Flags []string
}

// Dev is a development host: a whole pgherd in one process, whose PostgreSQL and PgBouncer die with it.
type Dev struct {
	*Process
	// URL and OpsURL are those of the API and of the operations listener.
	URL, OpsURL string
	// Facts are the variables of the file env.
	Facts map[string]string
	// Flags are those of the options; a change holds from the next Restart on.
	Flags []string

	options DevOptions
	args    []string
}

// StartDev starts a development host on free ports and waits until it is ready.
func StartDev(ctx context.Context, o DevOptions) (*Dev, error) {
	d := &Dev{options: o, Flags: o.Flags, args: []string{"dev", "--state-dir=" + filepath.Join(o.Dir, "dev")}}
	at := map[string]string{}
	for _, flag := range []string{"api-port", "dashboard-port", "ops-port", "agent-port", "pooler-port", "postgres-port"} {
		port, err := cluster.FreePort(loopback)
		if err != nil {
			return nil, err
		}
		at[flag] = "http://" + loopback + ":" + strconv.Itoa(port)
		d.args = append(d.args, "--"+flag+"="+strconv.Itoa(port))
	}
	d.URL, d.OpsURL = at["api-port"], at["ops-port"]
	return d, d.Restart(ctx, "")
}

// Restart starts the host again, with the same state and at the same addresses, after it has ended. crashAt arms a crash
// point, in a program built with the tag CrashPoints.
func (d *Dev) Restart(ctx context.Context, crashAt string) (err error) {
	if d.Process != nil && d.Running() {
		return fmt.Errorf("%s runs already", d.Name)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TZ=UTC"}
	// It looks for the tools by itself, and must find those that this process does.
	for _, name := range []string{toolchain.BindirVariable, toolchain.PoolerVariable, toolchain.ArchiverVariable} {
		env = append(env, name+"="+os.Getenv(name))
	}
	if crashAt != "" {
		env = append(env, crashVariable+"="+crashAt)
	}
	for {
		err = d.start(ctx, env)
		inUse := d.Process != nil && strings.Contains(d.tail(), "is in use by another program")
		if err == nil || ctx.Err() != nil || !inUse || d.Running() {
			break
		}
		// The PostgreSQL of one that was killed dies a moment after it, and a connection may have taken a port meanwhile.
		time.Sleep(Pause(0))
	}
	if err != nil {
		return err
	}
	d.Facts, err = readFacts(filepath.Join(d.options.Dir, "dev", "env"))
	return err
}

// start starts the process and waits until it is ready.
func (d *Dev) start(ctx context.Context, env []string) (err error) {
	said := filepath.Join(d.options.Dir, "dev.out")
	if err := os.RemoveAll(said); err != nil {
		return err
	}
	if d.Process, err = launch(Place{}, "dev", d.options.Binary, said, env, slices.Concat(d.args, d.Flags)...); err != nil {
		return err
	}
	return d.await(ctx, func() error {
		if _, err := get(ctx, http.DefaultClient, d.OpsURL+"/readyz", nil, http.StatusOK); err != nil {
			return err
		}
		_, err := get(ctx, http.DefaultClient, d.URL+"/api/v1/databases", nil, http.StatusUnauthorized)
		return err
	})
}

// OperatorEnvironment is that of the operator's commands.
func (d *Dev) OperatorEnvironment() []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"PGHERD_METADATA_URL", "PGHERD_KEYRING_FILE"} {
		env = append(env, name+"="+d.Facts[name])
	}
	return env
}

// readFacts reads lines of NAME=value.
func readFacts(name string) (map[string]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	facts := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		facts[key] = strings.Trim(value, "'")
	}
	return facts, lines.Err()
}
