// The words that languages keep for themselves, for colouring code (highlight.js).

/** Language -> its words, with blanks between. */
export const WORDS = {
  python: `
    and as assert async await break case class continue def del elif else except finally for from global if
    import in is lambda match nonlocal not or pass raise return try while with yield None True False self
  `,
  javascript: `
    async await break case catch class const continue debugger default delete do else enum export extends
    finally for from function if implements import in instanceof interface let new of private protected public
    readonly return static super switch this throw try type typeof var void while with yield null undefined true
    false
  `,
  c: `
    abstract auto bool boolean break byte case catch char class const constexpr continue default delete do
    double else enum explicit extends extern final finally float for friend goto if implements import inline int
    interface internal long mutable namespace new nullptr null operator override package private protected
    public return sealed short signed sizeof static struct super switch template this throw throws try typedef
    typename union unsigned using var virtual void volatile while true false
  `,
  go: `
    break case chan const continue default defer else fallthrough for func go goto if import interface map
    package range return select struct switch type var nil true false string int bool byte rune error
  `,
  rust: `
    as async await box break const continue crate dyn else enum extern fn for if impl in let loop match mod move
    mut pub ref return self Self static struct super trait type unsafe use where while true false Some None Ok
    Err
  `,
  shell: `
    if then else elif fi for in do done while until case esac function return exit local export set unset shift
    source trap echo cd
  `,
  sql: `
    select from where and or not null is in insert into values update set delete create table index view drop
    alter add primary key foreign references join left right inner outer full on as group by order having limit
    offset union all distinct case when then else end with returning begin commit rollback
  `,
  ruby: `
    alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or
    redo rescue retry return self super then true undef unless until when while yield require
  `,
  plain: `
    true false null yes no on off
  `,
};
