package memstore

import (
	"maps"
	"slices"
)

// rows is a table by primary key. The map behind it is never changed once it is committed: the first write of a transaction
// copies it, so a reader keeps what it has seen.
type rows[K comparable, V any] struct {
	byKey map[K]V
	own   bool
}

func (r *rows[K, V]) get(key K) (V, bool) {
	v, ok := r.byKey[key]
	return v, ok
}

func (r *rows[K, V]) put(key K, v V) {
	r.toOwn()
	r.byKey[key] = v
}

func (r *rows[K, V]) remove(match func(K, V) bool) {
	r.toOwn()
	maps.DeleteFunc(r.byKey, match)
}

func (r *rows[K, V]) toOwn() {
	if !r.own {
		r.byKey, r.own = maps.Clone(r.byKey), true
	}
	if r.byKey == nil {
		r.byKey = map[K]V{}
	}
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
