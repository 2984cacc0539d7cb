package sidecar

import (
	"crypto/sha256"
	"io"
	"slices"
	"strings"
)

// Difference is an object that is not in the copy as it was in the backup.
type Difference struct {
	Object string // as pg_dump's comments name it
	What   string // what differs: "missing", "not in the backup" or "different"
}

func (d Difference) String() string { return d.Object + " is " + d.What }

// Compare says where a schema-only dump of the copy differs from the sidecar, by object. Both are taken as what they say about
// the copy, with the roles of now and without the policies that were dropped. The order of statements does not count, nor does
// what the older one of two versions of PostgreSQL does not know.
func (r Roles) Compare(sidecar, ofCopy io.Reader) ([]Difference, error) {
	then, sidecar := OriginOf(sidecar)
	now, ofCopy := OriginOf(ofCopy)
	b, oldest := balance{}, min(then.major(), now.major()) // 0: one of them is not known
	if err := b.read(sidecar, r, oldest, 1); err != nil {
		return nil, err
	}
	if err := b.read(ofCopy, Roles{same: true}, oldest, -1); err != nil {
		return nil, err
	}
	return b.differences(), nil
}

// balance counts statements, by what they say: those of the sidecar up, those of the copy down.
type balance map[[sha256.Size]byte]entry

type entry struct {
	object string
	n      int
}

func (b balance) add(object, says string, n int) {
	key := sha256.Sum256([]byte(says))
	e := entry{object, b[key].n + n}
	if e.n == 0 {
		delete(b, key)
		return
	}
	b[key] = e
}

func (b balance) differences() (list []Difference) {
	missing, extra := map[string]bool{}, map[string]bool{}
	for _, e := range b {
		if e.n > 0 {
			missing[e.object] = true
		} else {
			extra[e.object] = true
		}
	}
	for object := range missing {
		what := "missing"
		if extra[object] {
			what = "different"
		}
		list = append(list, Difference{object, what})
	}
	for object := range extra {
		if !missing[object] {
			list = append(list, Difference{object, "not in the backup"})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int { return strings.Compare(a.Object, b.Object) })
	return list
}

func (b balance) read(dump io.Reader, r Roles, oldest major, n int) error {
	m := meaning{
		source: newSource(dump), roles: r, oldest: oldest, gone: map[string]bool{}, notNulls: map[string][]string{},
		say: func(object, says string) { b.add(object, says, n) },
	}
	return m.source.each(m.statement)
}

// meaning turns the statements of a dump into what they say.
type meaning struct {
	source *source
	roles  Roles
	oldest major // the lower one of the dumps that are compared
	say    func(object, says string)
	gone   map[string]bool // policies

	notNulls map[string][]string // columns, by table, where one version is from before such constraints
}

func (m *meaning) statement(st statement) error {
	switch s := st.parsed.(type) {
	case grants:
		m.grants(s)
	case ownership:
		m.say(st.object, "ALTER "+s.sql()+" OWNER TO "+roleSQL(m.roles.heir(s.owner)))
	case defaults:
		if now, ok := m.roles.defaults(s); ok {
			return m.defaults(st.object, now)
		}
	case policy:
		m.policy(st, s)
	case policyComment:
		if !m.gone[s.name+" ON "+s.table] {
			m.say(st.object, st.normal(0, 0))
		}
	default:
		if st.aboutDatabase() && !m.table(st) {
			m.say(st.object, st.normal(0, 0))
		}
	}
	return nil
}

// aboutDatabase is false for the settings of who reads the dump, which another version of pg_dump writes differently.
func (s statement) aboutDatabase() bool {
	first := s.words[0].text
	return first != "SELECT" && (first != "SET" || strings.HasPrefix(s.words[1].text, "default_"))
}

func (m *meaning) policy(st statement, s policy) {
	roles := m.roles.standing(s.roles)
	if len(roles) == 0 && len(s.roles) > 0 {
		m.gone[s.name+" ON "+s.table] = true
		return
	}
	slices.Sort(roles)
	m.say(st.object, st.normal(s.from, s.to)+strings.Join(roles, "\x00"))
}

// grants says each privilege by itself.
func (m *meaning) grants(of grants) {
	list := m.roles.grants(of.owner, of.list)
	if _, stands := m.roles.now(of.owner); !stands {
		list = settled(m.roles.Owner, list)
	}
	for _, g := range list {
		for _, p := range m.oldest.known(g.privileges) {
			g.privileges = []privilege{p}
			m.say(of.object, g.sql()+" BY "+roleSQL(g.grantor))
		}
	}
}
