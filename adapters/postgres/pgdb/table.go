package pgdb

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	sq "github.com/Masterminds/squirrel"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/lib/pq"
)

// Table maps a type of the domain to its table: the db tags of the type are the columns.
type Table[T any] struct {
	Name    string
	Columns []string
	// optional are the uuid columns in which an empty identifier is stored as NULL.
	optional []string

	add, save *Statement
	saved     []string // the arguments of save
}

var mapper = reflectx.NewMapper("db")

// TableOf makes the table of T, without those columns of T that other tables hold.
func TableOf[T any](name string, elsewhere ...string) *Table[T] {
	var columns []string
	for _, field := range mapper.TypeMap(reflect.TypeFor[T]()).Index {
		tag := field.Field.Tag.Get("db")
		if tag != "" && tag == field.Path && !slices.Contains(elsewhere, tag) {
			columns = append(columns, tag)
		}
	}
	return &Table[T]{Name: name, Columns: columns}
}

// WithOptional names the uuid columns in which an empty identifier is stored as NULL.
func (t *Table[T]) WithOptional(columns ...string) *Table[T] {
	t.optional = columns
	return t
}

// Added has Add insert a row, with what follows the INSERT.
func (t *Table[T]) Added(suffix ...string) *Table[T] {
	t.add = Define(t.Insert().Suffix(strings.Join(suffix, " ")))
	return t
}

// Saved has Save change some columns of the row that has the same key.
func (t *Table[T]) Saved(key, columns []string) *Table[T] {
	t.save = Define(t.Update(columns, strings.Join(key, " = ? AND ")+" = ?"))
	t.saved = slices.Concat(columns, key)
	return t
}

// List is what a SELECT of the row returns, with its columns qualified by alias.
func (t *Table[T]) List(alias string) []string {
	list := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		if list[i] = t.read(alias, column); slices.Contains(t.optional, column) {
			list[i] += " AS " + column
		}
	}
	return list
}

// read is a column as it is read.
func (t *Table[T]) read(alias, column string) string {
	if slices.Contains(t.optional, column) {
		return "coalesce(" + alias + "." + column + "::text, '')"
	}
	return alias + "." + column
}

// Row is List as one text, for statements that are written.
func (t *Table[T]) Row(alias string) string { return strings.Join(t.List(alias), ", ") }

// Prefixed is a list of the columns under names that begin with prefix, as sqlx finds the fields of a nested struct.
func (t *Table[T]) Prefixed(alias, prefix string) string {
	list := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		list[i] = t.read(alias, column) + ` AS "` + prefix + column + `"`
	}
	return strings.Join(list, ", ")
}

// Read begins a SELECT of whole rows; the table's alias is t.
func (t *Table[T]) Read() sq.SelectBuilder { return Dollar.Select(t.List("t")...).From(t.Name + " t") }

// Insert builds the INSERT of a row; its arguments are those of Values.
func (t *Table[T]) Insert() sq.InsertBuilder {
	places := make([]any, len(t.Columns))
	for i, column := range t.Columns {
		places[i] = sq.Expr("?", nil)
		if slices.Contains(t.optional, column) {
			places[i] = sq.Expr("nullif(?, '')::uuid", nil)
		}
	}
	return Dollar.Insert(t.Name).Columns(t.Columns...).Values(places...)
}

// Values are the arguments of Insert.
func (t *Table[T]) Values(row T) []any { return ValuesOf(row, t.Columns) }

// Arrays are the values of rows, as an array for each column.
func (t *Table[T]) Arrays(rows []T) []any {
	columns := make([][]any, len(t.Columns))
	for _, row := range rows {
		for i, value := range t.Values(row) {
			columns[i] = append(columns[i], value)
		}
	}
	arrays := make([]any, len(columns))
	for i := range columns {
		arrays[i] = pq.Array(columns[i])
	}
	return arrays
}

// Update builds the UPDATE of some columns; its arguments are those columns' values, then those of where.
func (t *Table[T]) Update(columns []string, where string) sq.UpdateBuilder {
	update := Dollar.Update(t.Name)
	for _, column := range columns {
		var value any
		if slices.Contains(t.optional, column) {
			value = sq.Expr("nullif(?, '')::uuid", nil)
		}
		update = update.Set(column, value)
	}
	return update.Where(where)
}

// ValuesOf are the fields of row with these db tags. An empty JSON text is stored as null.
func ValuesOf[T any](row T, columns []string) []any {
	known, fields := mapper.TypeMap(reflect.TypeFor[T]()), reflect.ValueOf(row)
	values := make([]any, len(columns))
	for i, column := range columns {
		// Not the mapper's own look-up, which replaces nil pointers with pointers to zero values.
		values[i] = fields.FieldByIndex(known.GetByPath(column).Index).Interface()
		if raw, ok := values[i].(json.RawMessage); ok && len(raw) == 0 {
			values[i] = json.RawMessage("null")
		}
	}
	return values
}
