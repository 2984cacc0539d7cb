package floors

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/agent/child"
	"github.com/pgherd/pgherd/core/pgversion"
)

// Program is a program that the agent works with, by the first word of the version that it reports.
type Program string

// The programs.
const (
	PostgreSQL Program = "PostgreSQL"
	PgBouncer  Program = "PgBouncer"
	PgDump     Program = "pg_dump"
	PgBackRest Program = "pgBackRest"
)

// All lists all programs.
var All = []Program{PostgreSQL, PgBouncer, PgDump, PgBackRest}

// Number is a version's number: PostgreSQL's have two parts, those of PgBouncer and pgBackRest three.
type Number [3]int

// AtLeast reports whether n is m or later.
func (n Number) AtLeast(m Number) bool { return slices.Compare(n[:], m[:]) >= 0 }

// String leaves out a third part of 0, which PostgreSQL's numbers do not have.
func (n Number) String() string {
	if n[2] == 0 {
		return fmt.Sprintf("%d.%d", n[0], n[1])
	}
	return fmt.Sprintf("%d.%d.%d", n[0], n[1], n[2])
}

var numberPattern = regexp.MustCompile(`\b(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?`)

// ParseNumber finds the first number in the text that a program prints about its version. A version before a release, such as
// 17beta1, has none.
func ParseNumber(text string) (n Number, ok bool) {
	match := numberPattern.FindStringSubmatch(text)
	if match == nil {
		return n, false
	}
	for i, digits := range match[1:] {
		if digits == "" {
			continue
		}
		part, err := strconv.Atoi(digits)
		if err != nil {
			return Number{}, false
		}
		n[i] = part
	}
	return n, true
}

// Version is a version as a program reports it, in one line: "PostgreSQL 16.16 (Debian 16.16-1.pgdg13+1)", "PgBouncer 1.26.1",
// "pg_dump (PostgreSQL) 17.12 (Debian 17.12-0+deb13u1)".
type Version struct {
	Program Program
	Text    string
	Number  Number
}

// Parse reads one line that a program reports.
func Parse(text string) (Version, error) {
	word, _, _ := strings.Cut(text, " ")
	number, ok := ParseNumber(text)
	if !slices.Contains(All, Program(word)) || !ok || text != strings.TrimSpace(text) {
		return Version{}, fmt.Errorf(
			`%q is no version as PostgreSQL, PgBouncer, pg_dump or pgBackRest report it, such as "PgBouncer 1.26.1"`, text)
	}
	return Version{Program(word), text, number}, nil
}

// Dumps refuses a pg_dump that is older than the server: it would refuse to dump that.
func (v Version) Dumps(server Version) error {
	if v.Number[0] >= server.Number[0] {
		return nil
	}
	return fmt.Errorf("%s dumps no server of %s: install a pg_dump of %d or later, and name it with --pg-dump",
		v.Text, server.Text, server.Number[0])
}

// Runs refuses a version of the server's program that does not run the data of a major version; 0: that of no server.
func (v Version) Runs(major int) error {
	switch {
	case v.Program != PostgreSQL:
		return fmt.Errorf("it is %s: give the program postgres, of the server's version", v.Text)
	case !pgversion.Supported(v.Number[0]):
		return fmt.Errorf("it is %s, and servers have PostgreSQL %d to %d", v.Text, pgversion.Oldest, pgversion.Newest)
	case major != 0 && v.Number[0] != major:
		return fmt.Errorf("it is %s, and the server's data are of PostgreSQL %d: give the program postgres of %[2]d", v.Text, major)
	}
	return nil
}

// OfServer is the beginning of a query that asks a PostgreSQL server for what Server takes.
const OfServer = "SELECT current_setting('server_version'), current_setting('server_version_num')::int"

// Server makes a version of what a PostgreSQL server says of itself: server_version and server_version_num.
func Server(version string, number int) Version {
	return Version{PostgreSQL, string(PostgreSQL) + " " + version, Number{number / 10000, number % 10000}}
}

// Find asks one of the All, by its path, for its version. It runs as a system user; nil: the caller's own.
func Find(ctx context.Context, path string, as *syscall.Credential) (Version, error) {
	text, err := Said(ctx, path, as)
	if err != nil {
		return Version{}, err
	}
	found, err := Parse(text)
	if err != nil {
		return Version{}, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// askTime bounds how long a program may take to print its version.
const askTime = 30 * time.Second

// Said asks a program for its version and returns the first line that it prints, without the blanks around it. What the program
// postgres prints becomes what a server says of itself. It runs as a system user, nil: the caller's own: whoever can replace the
// program must not become root by a caller that is root, nor see secrets in the caller's environment, which it does not get.
func Said(ctx context.Context, path string, as *syscall.Credential) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	runtime.LockOSThread() // see child.Attributes
	defer runtime.UnlockOSThread()
	question := "--version"
	if filepath.Base(path) == "pgbackrest" {
		question = "version" // Before 2.51 it knew nothing else.
	}
	program := exec.CommandContext(ctx, path, question)
	program.Env, program.SysProcAttr = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}, child.Attributes(as)
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGKILL) }
	program.WaitDelay = time.Second // What has left the group may hold its output.
	out, err := program.Output()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it says nothing in time: %w", ctx.Err()) // and not that it was killed, which we have done
	}
	switch {
	case err != nil && as != nil:
		return "", fmt.Errorf("%s %s, as the system user %d: %w", path, question, as.Uid, err)
	case err != nil:
		return "", fmt.Errorf("%s %s: %w", path, question, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	line = strings.TrimSpace(line)
	if number, ok := strings.CutPrefix(line, "postgres (PostgreSQL) "); ok {
		line = string(PostgreSQL) + " " + number
	}
	return line, nil
}
