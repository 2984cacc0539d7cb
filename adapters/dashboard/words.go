package dashboard

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// plain is a name of the API as words: "sql_ready" is "sql ready".
func plain[T ~string](name T) string {
	return strings.NewReplacer("_", " ", ".", " ").Replace(string(name))
}

func statusMark(s database.Status) *web.Mark {
	tone := web.Busy
	switch s { //nolint:exhaustive // all others are under way
	case database.Active:
		tone = web.Good
	case database.Stopped, database.Deleted:
		tone = web.Neutral
	}
	return &web.Mark{Text: plain(s), Tone: tone}
}

// storageMark is nil where the quota does nothing to a database.
func storageMark(s database.StorageStatus) *web.Mark {
	switch s {
	case database.StorageFull:
		return &web.Mark{Text: "storage full: read only", Tone: web.Bad}
	case database.StorageClosed:
		return &web.Mark{Text: "storage full: closed", Tone: web.Bad}
	default:
		return nil
	}
}

func operationMark(o operation.Operation) *web.Mark {
	tone := web.Busy
	switch o.Status { //nolint:exhaustive // the others are open
	case operation.Succeeded:
		tone = web.Good
	case operation.Failed:
		tone = web.Bad
	case operation.Canceled:
		tone = web.Neutral
	}
	return &web.Mark{Text: plain(o.Status), Tone: tone}
}

func roleMark(s role.Status) *web.Mark {
	tone := web.Neutral
	switch s { //nolint:exhaustive // the others are of no login
	case role.Ready:
		tone = web.Good
	case role.Updating:
		tone = web.Busy
	case role.Reserved, role.SQLReady, role.Expired:
		tone = web.Warning
	}
	return &web.Mark{Text: plain(s), Tone: tone}
}

// sizeCell shows a size and how much it is of a quota.
func sizeCell(size, quota int64) web.Cell {
	cell := web.Cell{Key: size}
	if quota <= 0 {
		cell.Text = web.Bytes(size)
		return cell
	}
	percent := int(min(100, size*100/quota))
	bar := &web.Bar{Percent: percent, Text: fmt.Sprintf("%s of %s", web.Bytes(size), web.Bytes(quota))}
	switch {
	case percent >= 100:
		bar.Tone = web.Bad
	case percent >= 80:
		bar.Tone = web.Warning
	}
	cell.Bar = bar
	return cell
}

// progressCell shows how far an operation has come.
func progressCell(o operation.Operation) web.Cell {
	if o.Status != operation.Running {
		return web.Cell{}
	}
	text := fmt.Sprintf("%d %%", o.Progress)
	if o.BytesTotal > 0 {
		text = fmt.Sprintf("%d %%, %s of %s", o.Progress, web.Bytes(o.BytesDone), web.Bytes(o.BytesTotal))
	}
	return web.Cell{Bar: &web.Bar{Percent: o.Progress, Text: text}, Sub: plain(o.Stage)}
}

func options[T ~string](list []T, empty string) (of []web.Option) {
	if empty != "" {
		of = append(of, web.Option{Text: empty})
	}
	for _, v := range list {
		of = append(of, web.Option{Value: string(v), Text: plain(v)})
	}
	return of
}

func button(name, action, submit string, hidden ...web.Pair) *web.Form {
	return &web.Form{Name: name, Action: action, Submit: submit, Inline: true, Hidden: hidden}
}

// yes is what somebody ticks who agrees.
const yes = "on"

// by is who did something.
func by(name string, person *account.User) web.Cell {
	if person == nil {
		return web.Words(name)
	}
	return web.Cell{Text: person.Name, Sub: name}
}

func under(db id.DatabaseID, parts ...string) string {
	return pathOf(db) + "/" + strings.Join(parts, "/")
}
