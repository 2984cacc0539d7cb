package memstore

import (
	"maps"
	"slices"
)

// txid numbers the transactions that a state has come from.
type txid int64

// rows is a table by primary key. It remembers the transaction that made its map: any other one copies the map before it writes.
// So a reader keeps what it has seen, and a transaction that fails leaves nothing.
type rows[K comparable, V any] struct {
	byKey  map[K]V
	madeBy txid
}

func (r *rows[K, V]) get(key K) (V, bool) {
	v, ok := r.byKey[key]
	return v, ok
}

func (r *rows[K, V]) put(by txid, key K, v V) { r.writable(by)[key] = v }

func (r *rows[K, V]) delete(by txid, key K) { delete(r.writable(by), key) }

func (r *rows[K, V]) remove(by txid, match func(K, V) bool) { maps.DeleteFunc(r.writable(by), match) }

func (r *rows[K, V]) writable(by txid) map[K]V {
	if r.madeBy != by {
		r.byKey, r.madeBy = maps.Clone(r.byKey), by
	}
	if r.byKey == nil {
		r.byKey = map[K]V{}
	}
	return r.byKey
}

// having returns the matching rows, in order where one is given.
func (r *rows[K, V]) having(match func(V) bool, order func(a, b V) int) []V {
	var list []V
	for _, v := range r.byKey {
		if match(v) {
			list = append(list, v)
		}
	}
	if order != nil {
		slices.SortFunc(list, order)
	}
	return list
}

// every row matches it.
func every[V any](V) bool { return true }

// any reports whether a row matches.
func (r *rows[K, V]) any(match func(V) bool) bool {
	for _, v := range r.byKey {
		if match(v) {
			return true
		}
	}
	return false
}

// each replaces the rows of a list that nobody else has.
func each[V any](list []V, by func(V) V) []V {
	for i, v := range list {
		list[i] = by(v)
	}
	return list
}

// first returns at most limit rows; a limit of 0 or less is none.
func first[V any](list []V, limit int) []V {
	if limit > 0 && len(list) > limit {
		return list[:limit]
	}
	return list
}
