// Package svc holds the scripts of the command-line client, in testdata/script, and what they need. Each script has a service
// of its own, with everything behind its API in memory, and an account on plan business there. Scripts run at the same time.
//
// A script starts without a configuration of svc, and with these variables: SVC_BASE_URL, of a proxy before the API host, which
// keeps what it saw and can fail; SVC_API_KEY, a full-account key; TLS_URL and TLS_CA_FILE, the same proxy with TLS; ACCOUNT_ID
// and OWNER_EMAIL. HOME and XDG_CONFIG_HOME are below $WORK.
//
// The service's clock stands still, at 2026-01-05T09:30:00Z in the beginning, and moves on by a second with each changing
// request: nothing is as old as something else. Queued operations are worked on in the background, and take no time.
//
// Besides the commands of testscript (https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript), among which are "! svc ..."
// for a command that fails, "stdin FILE", "stdout PATTERN" and "cmp stdout FILE", there are the following. Most say what they
// take when they are given something else. DATABASE is a name or an ID.
//
//	status 2 svc databases create      The command ends with this status.
//	tty 80x24 svc databases list       On a terminal of 80 columns and 24 lines. Standard output is what the terminal has got,
//	                                   with ESC written ␛ and a carriage return written ␍. With ! or status N before it as well.
//	tty 80x24 -screen svc ...          Standard output is what remains on the screen, without colours.
//	tty 80x24 -in FILE svc ...         Types the lines of FILE, each when a prompt stands there: an unfinished line after which
//	                                   nothing comes. Of a line with * before it, the rest is typed once the terminal does not
//	                                   show it. The line ^C interrupts, also a progress bar; the line ^D ends the input.
//	screens svc databases get orders   On terminals of 80 and of 200 columns, with -screen: both show the same.
//	mask                               Replaces in the last output what differs from run to run by placeholders as wide as it:
//	                                   IDs, which are numbered, checksums, secrets, request IDs, made-up addresses of mail.
//	setenv ID id                       Sets $ID to a member of the JSON in standard output; "data.0.id" is one further down.
//	setfile KEY file.txt               Sets $KEY to the text of a file, or of stdout or stderr, without spaces around it.
//	page ci.md                            Writes the shell of a page of the documentation to files: see shellOf.
//	clock 24h                          Lets time pass for the service.
//	batch stop                         Leaves operations queued; "batch start" goes on.
//	operator key selected orders KEY   Makes a key for the database and sets $KEY.
//	operator trust CI SUBJECT             Has the namespace of the key $CI trust tokens with the subject.
//	operator enroll orders restore     Opens a limited-rollout route.
//	operator feature disable clone     Turns a feature off.
//	backup hold orders                 Keeps running backups of the database from finishing, until "backup release".
//	agent stop                         Nobody reaches the agent, until "agent start".
//	archive lose 30s                   Has the archive lose what is written in this time from now on.
//	owner withdraw orders USERNAME     The owner of the database does this in SQL.
//	mail somebody@example.org          Prints the last mail to an address.
//	accept somebody@example.org        Accepts the invitation that was mailed to an address last.
//	delivery BODY                      Writes the body of the next webhook to the file, and prints its headers.
//	token SUBJECT FILE                    Writes a token that a CI system makes for a run to the file.
//	proxy retry-after 1 2              Answers the next two requests with 429 and "Retry-After: 1".
//	proxy answer 500 FILE              Answers every request with the file, until "proxy up".
//	proxy cut 1000                     Breaks the next download off after 1000 bytes.
//	requests                           Prints the requests since the last time, such as "POST /api/v1/databases key=K".
//
// With PGHERD_UPDATE_GOLDEN=1, files that "cmp" finds to be different are rewritten.
package svc

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pgherd/pgherd/hosts/svc/cli"
)

func TestMain(m *testing.M) {
	// Scripts mostly wait: for pauses between two tries, and for terminals to be quiet.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"svc": cli.Main, "tty": terminalMain})
}
