// The branches of a JavaScript text, and how often V8 says that each was taken.
import ts from 'typescript';

const LOGICAL = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);

/**
 * Both sides of an `if` and of `?:`, each case of a `switch`, the right side of `&&`, `||` and `??`, the body of a loop, a `catch`.
 * Functions that the compiler added (`__decorate`) do not count.
 *
 * @returns what each is, its line and a function that tells how often it was taken, given the count at a place of the text
 */
export function branchesOf(text) {
  const tree = ts.createSourceFile('x.js', text, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const found = [];
  const add = (what, node, taken) => {
    const { line } = tree.getLineAndCharacterOfPosition(node.getStart());
    found.push({ what, line: line + 1, text: text.split('\n')[line].trim(), taken });
  };
  const here = (node) => (countAt) => countAt(node.getStart());
  const rest = (node, one) => (countAt) => countAt(node.getStart()) - countAt(one.getStart());
  const visit = (node) => {
    if (ts.isVariableStatement(node) && node.getText().startsWith('var __')) return;
    if (ts.isIfStatement(node)) {
      add('then', node, here(node.thenStatement));
      add('else', node, node.elseStatement ? here(node.elseStatement) : rest(node, node.thenStatement));
    } else if (ts.isConditionalExpression(node)) {
      add('?', node.whenTrue, here(node.whenTrue));
      add(':', node.whenFalse, here(node.whenFalse));
    } else if (ts.isBinaryExpression(node) && LOGICAL.has(node.operatorToken.kind)) {
      add(node.operatorToken.getText(), node.right, here(node.right));
    } else if (ts.isCaseOrDefaultClause(node)) {
      // One without statements is the same branch as the next one.
      if (node.statements.length > 0) add('case', node, here(node.statements[0]));
    } else if (ts.isIterationStatement(node, false)) {
      add('loop', node, here(node.statement));
    } else if (ts.isCatchClause(node)) {
      add('catch', node, here(node.block));
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

/** @param functions of a file, as the profiler gives them @returns how often the text at a place has run */
export function counter(functions) {
  const ranges = functions
    .flatMap(({ ranges }) => ranges)
    .toSorted((one, other) => one.endOffset - one.startOffset - (other.endOffset - other.startOffset));
  // The smallest one says it. All of them lie within each other or apart.
  return (place) => ranges.find(({ startOffset, endOffset }) => startOffset <= place && place < endOffset)?.count ?? 0;
}
